/** A Python list of calls. */
import { ALL_TEXT, pythonFormat } from './tool-format.ts'

export const pythonic = pythonFormat(
  { open: '<|python_start|>', close: '<|python_end|>', isBare: true, list: 'always' },
  ALL_TEXT,
)

export const lfm25 = pythonFormat({
  open: '<|tool_call_start|>',
  close: '<|tool_call_end|>',
  isBare: false,
  list: 'optional',
})

/** One call per line, or a list. */
export const olmo3 = pythonFormat({
  open: '<function_calls>',
  close: '</function_calls>',
  isBare: false,
  list: 'optional',
})
