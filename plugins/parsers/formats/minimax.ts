/** Invoke tags with parameter tags in a wrapper. @source parsers facts 1.20; of November 2026, 2 */
import { decodeEntities } from '../calls/tag-attributes.ts'
import { headedFormat } from './tool-format.ts'

function invokeTags(wrapper: string) {
  return headedFormat({
    section: [`<${wrapper}>`, `</${wrapper}>`],
    open: ['<invoke name="'],
    nameEnd: '">',
    body: 'pairs',
    pair: {
      open: '<parameter name="',
      keyEnd: '">',
      toKey: (header) => (header === '' ? null : { name: header }),
      close: '</parameter>',
      toValue: decodeEntities,
    },
    close: ['</invoke>'],
  })
}

export const minimaxM2 = invokeTags('minimax:tool_call')
export const dots3 = invokeTags('dots_function_call')
