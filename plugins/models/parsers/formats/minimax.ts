/** Invoke tags with parameter tags in a wrapper. */
import { ENTITIES } from '../calls/tag-attributes.ts'
import { headedFormat } from './tool-format.ts'

function invokeTags(wrapper: string, replaced?: ReadonlyMap<string, string>) {
  return headedFormat({
    section: [[`<${wrapper}>`], [`</${wrapper}>`]],
    open: ['<invoke name="'],
    nameEnd: '">',
    body: 'pairs',
    pair: {
      open: '<parameter name="',
      keyEnd: '">',
      toKey: (header) => (header === '' ? null : { name: header }),
      close: '</parameter>',
      replaced,
    },
    close: ['</invoke>'],
  })
}

export const minimaxM2 = invokeTags('minimax:tool_call', ENTITIES)
export const dots3 = invokeTags('dots_function_call')
