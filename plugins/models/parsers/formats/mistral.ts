/**
 * `[TOOL_CALLS]` before an array of calls, or before a name, `[ARGS]` and JSON.
 */
import { jsonFormat } from './tool-format.ts'

export const mistral = jsonFormat({
  call: { nameKeys: ['name'], argumentKeys: ['arguments', 'parameters'] },
  open: '[TOOL_CALLS]',
  close: null,
  shape: 'either',
  bare: 'no',
  isOnce: false,
  argumentsMark: '[ARGS]',
})
