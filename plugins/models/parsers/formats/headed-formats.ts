/** Formats whose calls are a name and JSON, or a name and a notation of their own. */
import { DictBody } from '../calls/dict-body.ts'
import { ElementsBody } from '../calls/elements-body.ts'
import type { OpenBody } from '../calls/headed-format.ts'
import { JsonArguments, type JsonArgumentsRules } from '../calls/json-arguments.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { M3_PREFIX } from '../scan/prefixed-elements.ts'
import { ALL_TEXT, headedFormat } from './tool-format.ts'

function jsonBody(rules: JsonArgumentsRules): OpenBody {
  return (out, tool) => new JsonArguments(out, tool, rules)
}

const deepseekSection = [['<｜tool▁calls▁begin｜>'], ['<｜tool▁calls▁end｜>']] as const

/** A type word, a name and JSON in a fence. */
export const deepseek = headedFormat({
  section: deepseekSection,
  open: ['<｜tool▁call▁begin｜>', 'function', '<｜tool▁sep｜>'],
  nameEnd: '```json',
  body: jsonBody({ style: 'compact', other: 'wrap' }),
  close: ['```', '<｜tool▁call▁end｜>'],
})

/** A name and JSON, without type word and fence. */
export const deepseek31 = headedFormat({
  section: deepseekSection,
  open: ['<｜tool▁call▁begin｜>'],
  nameEnd: '<｜tool▁sep｜>',
  body: jsonBody({ style: 'compact', other: 'wrap' }),
  close: ['<｜tool▁call▁end｜>'],
})

/** Some models write the marks in the singular. */
export const KIMI_SECTION = [
  ['<|tool_calls_section_begin|>', '<|tool_call_section_begin|>'],
  ['<|tool_calls_section_end|>', '<|tool_call_section_end|>'],
] as const
export const KIMI_CALL = '<|tool_call_begin|>'
export const KIMI_ARGUMENTS = '<|tool_call_argument_begin|>'
export const KIMI_CALL_END = '<|tool_call_end|>'

/** An id that contains the name, such as `functions.name:0`, and JSON that is passed on unchanged. */
export const kimiK2 = headedFormat({
  section: KIMI_SECTION,
  open: [KIMI_CALL],
  nameEnd: KIMI_ARGUMENTS,
  // Only the first prefix is removed.
  toName: (id) => /^\s*(?:functions\.)?([\p{L}\p{N}_.-]+):\d+\s*$/u.exec(id)?.[1] ?? null,
  body: jsonBody({ style: 'raw', other: 'refuse' }),
  close: [KIMI_CALL_END],
})

/** `call:name{key:value,…}` with strings between special marks. */
function dictFormat(open: string, close: string, quoteMark: string) {
  const mark = new MarkerSearch([quoteMark])
  return headedFormat(
    {
      open: [open, 'call:'],
      nameEnd: '{',
      body: (out, tool) => new DictBody(out, tool, mark),
      close: [close],
    },
    ALL_TEXT,
  )
}

export const gemma4 = dictFormat('<|tool_call>', '<tool_call|>', '<|"|>')
export const functionGemma = dictFormat('<start_function_call>', '<end_function_call>', '<escape>')

/** Elements named by their keys, every tag behind a prefix. */
export const minimaxM3 = headedFormat({
  section: [[`${M3_PREFIX}<tool_call>`], [`${M3_PREFIX}</tool_call>`]],
  open: [`${M3_PREFIX}<invoke name="`],
  nameEnd: '">',
  body: (out, tool) => new ElementsBody(out, tool, 'invoke'),
  close: [`${M3_PREFIX}</invoke>`],
})
