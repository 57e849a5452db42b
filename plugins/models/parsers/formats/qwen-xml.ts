/** A function tag with parameter tags inside a call tag. */
import { headedFormat } from './tool-format.ts'

function functionTags(open: string, close: string, isExact = false) {
  return headedFormat({
    open: [open, '<function='],
    nameEnd: '>',
    body: 'pairs',
    pair: {
      open: '<parameter=',
      keyEnd: '>',
      toKey: (header) => ({ name: header.trim() }),
      close: '</parameter>',
      isExact,
    },
    inner: '</function>',
    close: [close],
  })
}

export const qwenXml = functionTags('<tool_call>', '</tool_call>')
/** Values stand directly between their tags. */
export const qwen3TaggedDirect = functionTags('<tool_call>', '</tool_call>', true)
export const seedOss = functionTags('<seed:tool_call>', '</seed:tool_call>')
