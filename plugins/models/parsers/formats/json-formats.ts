/** Formats whose calls are JSON objects with a name and arguments. */
import { ALL_TEXT, jsonFormat } from './tool-format.ts'

const call = { nameKeys: ['name'], argumentKeys: ['arguments', 'parameters'] }

/** One JSON object between tags. */
export const qwen = jsonFormat({ call, open: '<tool_call>', close: '</tool_call>', shape: 'object' })

export const llamaNemotron = jsonFormat({ call, open: '<TOOLCALL>', close: '</TOOLCALL>' })

/** A mark before an array of calls, or before a name, `[ARGS]` and JSON. */
export const mistral = jsonFormat({ call, open: '[TOOL_CALLS]', argumentsMark: '[ARGS]' })

/** JSON objects behind a mark, or as the whole answer. */
export const llama = jsonFormat({
  call: {
    nameKeys: ['name'],
    argumentKeys: ['parameters', 'arguments'],
    firstKeys: ['id', 'type', 'function'],
  },
  open: '<|python_tag|>',
  shape: 'object',
  bare: 'start',
  separator: ';',
})

export const RESPONSE_WRAPPERS = [
  '<|START_RESPONSE|>',
  '<|END_RESPONSE|>',
  '<|START_TEXT|>',
  '<|END_TEXT|>',
] as const

/** JSON between action marks; the wrappers of the answer are dropped. */
export const cohere = jsonFormat(
  {
    call: { nameKeys: ['tool_name', 'name'], argumentKeys: ['parameters', 'arguments'] },
    open: '<|START_ACTION|>',
    close: '<|END_ACTION|>',
    wrappers: RESPONSE_WRAPPERS,
  },
  { trailing: 'verbatim', space: 'trim' },
)

const bareCall = {
  nameKeys: ['name', 'function', 'tool_name'],
  argumentKeys: ['arguments', 'parameters'],
  firstKeys: ['id', 'type'],
}

/** The first JSON object or array in the text that is a call. */
export const json = jsonFormat({ call: bareCall, bare: 'anywhere' }, ALL_TEXT)

/** Arrays only. */
export const xlam = jsonFormat({ call: bareCall, bare: 'anywhere', shape: 'array' }, ALL_TEXT)
