/** An id that contains the name, and JSON that is passed on unchanged. */
import { headedFormat } from './tool-format.ts'

/** Some models write the marks in the singular. */
export const KIMI_SECTION = [
  ['<|tool_calls_section_begin|>', '<|tool_call_section_begin|>'],
  ['<|tool_calls_section_end|>', '<|tool_call_section_end|>'],
] as const
export const KIMI_CALL = '<|tool_call_begin|>'
export const KIMI_ARGUMENTS = '<|tool_call_argument_begin|>'
export const KIMI_CALL_END = '<|tool_call_end|>'

/** The id is `functions.name:0`; only the first such prefix is removed. */
function toName(id: string): string | null {
  return /^\s*(?:functions\.)?([\p{L}\p{N}_.-]+):\d+\s*$/u.exec(id)?.[1] ?? null
}

export const kimiK2 = headedFormat({
  section: KIMI_SECTION,
  open: [KIMI_CALL],
  nameEnd: KIMI_ARGUMENTS,
  toName,
  body: 'json',
  json: { style: 'raw', other: 'refuse' },
  close: [KIMI_CALL_END],
})
