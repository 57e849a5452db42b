/** All tool-call formats with their names and aliases. */
import { ChannelTagsReader } from '../calls/channel-tags-reader.ts'
import { DictBody } from '../calls/dict-body.ts'
import { ElementsBody, M3_PREFIX } from '../calls/elements-body.ts'
import type { OpenBody } from '../calls/headed-calls-reader.ts'
import { JsonArguments, type JsonArgumentsRules } from '../calls/json-arguments.ts'
import { PythonDictsReader } from '../calls/python-calls-reader.ts'
import { ENTITIES } from '../calls/tag-attributes.ts'
import { TypedFramesReader } from '../calls/typed-frames-reader.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import {
  dsml,
  functionTags,
  hunyuanTags,
  invokeTags,
  keyTags,
  namedPair,
  pairsFormat,
} from './pair-formats.ts'
import {
  ALL_TEXT,
  headedFormat,
  jsonFormat,
  PREFIX_TEXT,
  passthrough,
  pythonFormat,
  RESPONSE_WRAPPERS,
  type ToolFormat,
} from './tool-format.ts'

export interface NamedFormat {
  readonly name: string
  readonly aliases: readonly string[]
  readonly format: ToolFormat
  /** Texts that together occur only in templates of this format; empty if there are none. */
  readonly templateMarks: readonly string[]
}

function row(
  name: string,
  format: ToolFormat,
  templateMark: string | readonly string[] | null = null,
  aliases: readonly string[] = [],
): NamedFormat {
  return { name, aliases, format, templateMarks: templateMark === null ? [] : [templateMark].flat() }
}

const call = { nameKeys: ['name'], argumentKeys: ['arguments', 'parameters'] }
const bareCall = {
  nameKeys: ['name', 'function', 'tool_name'],
  argumentKeys: ['arguments', 'parameters'],
  firstKeys: ['id', 'type'],
}

/** The first JSON object or array in the text that is a call. */
export const json = jsonFormat({ call: bareCall, bare: 'anywhere' }, ALL_TEXT)

const qwenXml = functionTags('tool_call')
/** The name ends with its word. */
const glm = keyTags('tool_call', '', 'word')
const k2Section = [['<ifm|tool_calls>'], ['</ifm|tool_calls>']] as const
const dsmlText = { trailing: 'prefix', space: 'before-calls' } as const
const trimmed = { trailing: 'verbatim', space: 'trim' } as const
const sarashinaMark = new MarkerSearch(['<|tool_calls|>'])
const deepseekSection = [['<｜tool▁calls▁begin｜>'], ['<｜tool▁calls▁end｜>']] as const

/** Some models write the marks in the singular. */
export const KIMI_SECTION = [
  ['<|tool_calls_section_begin|>', '<|tool_call_section_begin|>'],
  ['<|tool_calls_section_end|>', '<|tool_call_section_end|>'],
] as const
export const KIMI_CALL = '<|tool_call_begin|>'
export const KIMI_ARGUMENTS = '<|tool_call_argument_begin|>'
export const KIMI_CALL_END = '<|tool_call_end|>'

function jsonBody(rules: JsonArgumentsRules): OpenBody {
  return (out, tool) => new JsonArguments(out, tool, rules)
}

/** `call:name{key:value,…}` with strings between special marks. */
function dictFormat(open: string, close: string, quoteMark: string) {
  const mark = new MarkerSearch([quoteMark])
  const body: OpenBody = (out, tool) => new DictBody(out, tool, mark)
  return headedFormat({ open: [open, 'call:'], nameEnd: '{', body, close: [close] }, ALL_TEXT)
}

/** Aliases are other common names, such as those of engine flags. The first format whose marks a template contains wins. */
export const toolFormats: readonly NamedFormat[] = [
  row('passthrough', passthrough, null, ['plain']),
  row('seed_oss', functionTags('seed:tool_call'), '<seed:tool_call>'),
  row('iquest', keyTags('iquest_tool_call', '', 'word'), '<iquest_tool_call>'),
  row('qwen_xml', qwenXml, '<function=', ['qwen_coder', 'nemotron', 'qwen3_coder', 'qwen3_xml']),
  row('qwen3_tagged', qwenXml),
  // Values stand directly between their tags.
  row('qwen3_tagged_direct', functionTags('tool_call', true)),
  // Elements named by their keys, every tag behind a prefix.
  row(
    'minimax_m3',
    headedFormat({
      section: [[`${M3_PREFIX}<tool_call>`], [`${M3_PREFIX}</tool_call>`]],
      open: [`${M3_PREFIX}<invoke name="`],
      nameEnd: '">',
      body: (out, tool) => new ElementsBody(out, tool, 'invoke'),
      close: [`${M3_PREFIX}</invoke>`],
    }),
    ']<]minimax[>[',
  ),
  row('minimax_m2', invokeTags('minimax:tool_call', { replaced: ENTITIES }), '<minimax:tool_call>', [
    'minimax-m2',
  ]),
  row('dots3', invokeTags('dots_function_call'), '<dots_function_call>'),
  // An invoke tag behind a type word.
  row(
    'step3',
    pairsFormat(
      {
        section: [['<｜tool_calls_begin｜>'], ['<｜tool_calls_end｜>']],
        open: ['<｜tool_call_begin｜>', 'function', '<｜tool_sep｜>', '<steptml:invoke name="'],
        nameEnd: '">',
        close: ['</steptml:invoke>', '<｜tool_call_end｜>'],
      },
      namedPair('steptml:parameter', { isTyped: false }),
    ),
    '<steptml:invoke',
  ),
  row(
    'deepseek_v41',
    dsml({
      block: 'calls',
      gap: ' ',
      isBlockOptional: true,
      text: { trailing: 'prefix', space: 'blank-line' },
      style: 'spaced',
    }),
    '<｜DSML｜ calls>',
    ['deepseek_v4.1'],
  ),
  row('deepseek_v4', dsml({ block: 'tool_calls', text: dsmlText }), '<｜DSML｜tool_calls>'),
  row('deepseek32', dsml({ block: 'function_calls', text: dsmlText }), '<｜DSML｜function_calls>', [
    'deepseekv32',
    'deepseek_v32',
  ]),
  // A type word, a name and JSON in a fence.
  row(
    'deepseek',
    headedFormat({
      section: deepseekSection,
      open: ['<｜tool▁call▁begin｜>', 'function', '<｜tool▁sep｜>'],
      nameEnd: '```json',
      body: jsonBody({ style: 'compact', other: 'wrap' }),
      close: ['```', '<｜tool▁call▁end｜>'],
    }),
    ['<｜tool▁calls▁begin｜>', '```json'],
    ['deepseekv3', 'deepseek_v3'],
  ),
  // A name and JSON, without type word and fence.
  row(
    'deepseek31',
    headedFormat({
      section: deepseekSection,
      open: ['<｜tool▁call▁begin｜>'],
      nameEnd: '<｜tool▁sep｜>',
      body: jsonBody({ style: 'compact', other: 'wrap' }),
      close: ['<｜tool▁call▁end｜>'],
    }),
    '<｜tool▁calls▁begin｜>',
    ['deepseekv31', 'deepseek_v31'],
  ),
  // An id that contains the name, such as `functions.name:0`, and JSON that is passed on unchanged.
  row(
    'kimik2',
    headedFormat({
      section: KIMI_SECTION,
      open: [KIMI_CALL],
      nameEnd: KIMI_ARGUMENTS,
      // Only the first prefix is removed.
      toName: (id) => /^\s*(?:functions\.)?([\p{L}\p{N}_.-]+):\d+\s*$/u.exec(id)?.[1] ?? null,
      body: jsonBody({ style: 'raw', other: 'refuse' }),
      close: [KIMI_CALL_END],
    }),
    '<|tool_calls_section_begin|>',
    ['kimi_k2'],
  ),
  // Channels of `<|open|>` and `<|close|>` tags.
  row('kimi_k3', { text: PREFIX_TEXT, isMarked: false, open: (out) => new ChannelTagsReader(out) }),
  // Typed frames; a call of an undeclared tool is dropped with its frame.
  row(
    'inkling',
    { text: ALL_TEXT, isMarked: false, dropsUndeclared: true, open: (out) => new TypedFramesReader(out) },
    '<|content_invoke_tool_json|>',
  ),
  row('k2_horizon', keyTags('ifm|tool_call', 'ifm|', 'word', k2Section), '<ifm|tool_call>'),
  // Pairs of tags that may all have the suffix of their section.
  row('hy_v4', headedFormat(hunyuanTags(''), ALL_TEXT), '<tool_calls:', ['hy4']),
  row('glm', glm, '<arg_key>', ['glm4', 'ling']),
  row('glm47_moe', glm, null, ['glm47']),
  // The name ends with its line.
  row('glm45_moe', keyTags('tool_call', '', 'line'), null, ['glm45']),
  row('gemma4', dictFormat('<|tool_call>', '<tool_call|>', '<|"|>'), '<|tool_call>'),
  row(
    'function_gemma',
    dictFormat('<start_function_call>', '<end_function_call>', '<escape>'),
    '<start_function_call>',
    ['functiongemma'],
  ),
  row(
    'lfm2.5',
    pythonFormat({ open: '<|tool_call_start|>', close: '<|tool_call_end|>' }),
    '<|tool_call_start|>',
    ['lfm2'],
  ),
  row('olmo3', pythonFormat({ open: '<function_calls>', close: '</function_calls>' }), '<function_calls>'),
  // Values may be in CDATA.
  row(
    'minicpm5',
    pairsFormat(
      { open: ['<function name="'], nameEnd: '">', close: ['</function>'] },
      namedPair('param', { verbatim: ['<![CDATA[', ']]>'] }),
    ),
    '<param name=',
  ),
  row('llama_nemotron', jsonFormat({ call, open: '<TOOLCALL>', close: '</TOOLCALL>' }), '<TOOLCALL>'),
  // A mark before an array of calls, or before a name, `[ARGS]` and JSON.
  row('mistral', jsonFormat({ call, open: '[TOOL_CALLS]', argumentsMark: '[ARGS]' }), '[TOOL_CALLS]', [
    'mistral_v13',
  ]),
  // JSON between action marks; the wrappers of the answer are dropped.
  row(
    'cohere',
    jsonFormat(
      {
        call: { nameKeys: ['tool_name', 'name'], argumentKeys: ['parameters', 'arguments'] },
        open: '<|START_ACTION|>',
        close: '<|END_ACTION|>',
        wrappers: RESPONSE_WRAPPERS,
      },
      trimmed,
    ),
    '<|START_ACTION|>',
  ),
  // A list of dicts.
  row(
    'sarashina',
    { text: trimmed, isMarked: false, open: (out) => new PythonDictsReader(out, sarashinaMark) },
    '<|tool_calls|>',
  ),
  row(
    'pythonic',
    pythonFormat({ open: '<|python_start|>', close: '<|python_end|>', isBare: true }, ALL_TEXT),
    '<|python_start|>',
    ['llama4_pythonic'],
  ),
  // JSON objects behind a mark, or as the whole answer.
  row(
    'llama',
    jsonFormat({
      call: {
        nameKeys: ['name'],
        argumentKeys: ['parameters', 'arguments'],
        firstKeys: ['id', 'type', 'function'],
      },
      open: '<|python_tag|>',
      shape: 'object',
      bare: 'start',
      separator: ';',
    }),
    'dictionary of argument name',
    ['llama3', 'llama3_json', 'llama4_json'],
  ),
  // One JSON object between tags.
  row(
    'qwen',
    jsonFormat({ call, open: '<tool_call>', close: '</tool_call>', shape: 'object' }),
    '<tool_call>',
    ['qwen25', 'qwen2.5', 'qwen3', 'hermes'],
  ),
  // Arrays only.
  row('xlam', jsonFormat({ call: bareCall, bare: 'anywhere', shape: 'array' }, ALL_TEXT)),
  row('json', json),
]

const byName = new Map(
  toolFormats.flatMap((row) => [row.name, ...row.aliases].map((name) => [name, row] as const)),
)

/** Finds a format by its exact, case-sensitive name or alias. */
export function findToolFormat(name: string): NamedFormat | undefined {
  return byName.get(name)
}
