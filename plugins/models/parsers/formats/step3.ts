/** An invoke tag with parameter tags behind a type word. */
import { headedFormat } from './tool-format.ts'

export const step3 = headedFormat({
  section: [['<｜tool_calls_begin｜>'], ['<｜tool_calls_end｜>']],
  open: ['<｜tool_call_begin｜>', 'function', '<｜tool_sep｜>', '<steptml:invoke name="'],
  nameEnd: '">',
  body: 'pairs',
  pair: {
    open: '<steptml:parameter name="',
    keyEnd: '">',
    toKey: (header) => (header === '' ? null : { name: header }),
    close: '</steptml:parameter>',
    isTyped: false,
  },
  inner: '</steptml:invoke>',
  close: ['<｜tool_call_end｜>'],
})
