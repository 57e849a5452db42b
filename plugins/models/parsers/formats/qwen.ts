/** One JSON object between `<tool_call>` tags. */
import { jsonFormat } from './tool-format.ts'

export const qwen = jsonFormat({
  call: { nameKeys: ['name'], argumentKeys: ['arguments', 'parameters'] },
  open: '<tool_call>',
  close: '</tool_call>',
  shape: 'object',
  bare: 'no',
  isOnce: false,
})
