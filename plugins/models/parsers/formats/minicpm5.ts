/** A function tag with param tags, values perhaps in CDATA. */
import { headedFormat } from './tool-format.ts'

export const minicpm5 = headedFormat({
  open: ['<function name="'],
  nameEnd: '">',
  body: 'pairs',
  pair: {
    open: '<param name="',
    keyEnd: '">',
    toKey: (header) => (header === '' ? null : { name: header }),
    close: '</param>',
    verbatim: ['<![CDATA[', ']]>'],
  },
  close: ['</function>'],
})
