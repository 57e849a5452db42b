/** A function tag with parameter tags inside of a call tag. @source parsers facts 1.5 */
import { headedFormat } from './tool-format.ts'

function functionTags(open: string, close: string) {
  return headedFormat({
    open: [open, '<function='],
    nameEnd: '>',
    body: 'pairs',
    pair: {
      open: '<parameter=',
      keyEnd: '>',
      toKey: (header) => ({ name: header.trim() }),
      close: '</parameter>',
      toValue: (text) => text.trim(),
    },
    inner: '</function>',
    close: [close],
  })
}

export const qwenXml = functionTags('<tool_call>', '</tool_call>')
/** @source parsers facts of November 2026, 2 */
export const seedOss = functionTags('<seed:tool_call>', '</seed:tool_call>')
