/** Invoke tags with parameter tags in a wrapper. */
import { decodeEntities } from '../calls/tag-attributes.ts'
import { withoutLineEnds } from './qwen-xml.ts'
import { headedFormat } from './tool-format.ts'

function invokeTags(wrapper: string, toValue: (text: string) => string) {
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
      toValue,
    },
    close: ['</invoke>'],
  })
}

export const minimaxM2 = invokeTags('minimax:tool_call', decodeEntities)
export const dots3 = invokeTags('dots_function_call', withoutLineEnds)
