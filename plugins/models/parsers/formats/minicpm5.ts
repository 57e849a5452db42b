/** A function tag with param tags, values perhaps in CDATA. */
import { headedFormat } from './tool-format.ts'

const CDATA_OPEN = '<![CDATA['
const CDATA_CLOSE = ']]>'

function toValue(text: string): string {
  const trimmed = text.trim()
  if (trimmed.startsWith(CDATA_OPEN) && trimmed.endsWith(CDATA_CLOSE))
    return trimmed.slice(CDATA_OPEN.length, -CDATA_CLOSE.length)
  return text
}

export const minicpm5 = headedFormat({
  open: ['<function name="'],
  nameEnd: '">',
  body: 'pairs',
  pair: {
    open: '<param name="',
    keyEnd: '">',
    toKey: (header) => (header === '' ? null : { name: header }),
    close: '</param>',
    verbatim: [CDATA_OPEN, CDATA_CLOSE],
    toValue,
  },
  close: ['</function>'],
})
