/** JSON objects behind `<|python_tag|>`, or as the whole answer. */
import { jsonFormat } from './tool-format.ts'

export const llama = jsonFormat({
  call: {
    nameKeys: ['name'],
    argumentKeys: ['parameters', 'arguments'],
    firstKeys: ['id', 'type', 'function'],
  },
  open: '<|python_tag|>',
  close: null,
  shape: 'object',
  bare: 'start',
  separator: ';',
  isOnce: true,
})
