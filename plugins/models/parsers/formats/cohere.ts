/** JSON between action marks; the wrappers of the answer are dropped. */
import { jsonFormat } from './tool-format.ts'

export const RESPONSE_WRAPPERS = [
  '<|START_RESPONSE|>',
  '<|END_RESPONSE|>',
  '<|START_TEXT|>',
  '<|END_TEXT|>',
] as const

export const cohere = jsonFormat(
  {
    call: { nameKeys: ['tool_name', 'name'], argumentKeys: ['parameters', 'arguments'] },
    open: '<|START_ACTION|>',
    close: '<|END_ACTION|>',
    wrappers: RESPONSE_WRAPPERS,
    shape: 'either',
    bare: 'no',
    isOnce: false,
  },
  { trailing: 'verbatim', space: 'trim' },
)
