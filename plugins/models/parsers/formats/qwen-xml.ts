/** A function tag with parameter tags inside of a call tag. */
import { headedFormat } from './tool-format.ts'

function functionTags(open: string, close: string, toValue: (text: string) => string) {
  return headedFormat({
    open: [open, '<function='],
    nameEnd: '>',
    body: 'pairs',
    pair: {
      open: '<parameter=',
      keyEnd: '>',
      toKey: (header) => ({ name: header.trim() }),
      close: '</parameter>',
      toValue,
    },
    inner: '</function>',
    close: [close],
  })
}

/** A value may stand on lines of its own. */
export function withoutLineEnds(text: string): string {
  const start = text.startsWith('\n') ? 1 : 0
  return text.slice(start, text.endsWith('\n') && text.length > start ? -1 : undefined)
}

const verbatim = (text: string) => text

export const qwenXml = functionTags('<tool_call>', '</tool_call>', (text) => text.trim())
export const qwen3Tagged = functionTags('<tool_call>', '</tool_call>', withoutLineEnds)
export const qwen3TaggedDirect = functionTags('<tool_call>', '</tool_call>', verbatim)
export const seedOss = functionTags('<seed:tool_call>', '</seed:tool_call>', verbatim)
