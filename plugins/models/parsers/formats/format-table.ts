/** All tool-call formats with their names and aliases. */
import { ChannelTagsReader } from '../calls/channel-tags-reader.ts'
import { TypedFramesReader } from '../calls/typed-frames-reader.ts'
import { deepseek32, deepseekV4, deepseekV41 } from './dsml.ts'
import { deepseek, deepseek31, functionGemma, gemma4, kimiK2, minimaxM3 } from './headed-formats.ts'
import { cohere, json, llama, llamaNemotron, mistral, qwen, xlam } from './json-formats.ts'
import * as pairs from './pair-formats.ts'
import { passthrough } from './passthrough.ts'
import { lfm25, olmo3, pythonic, sarashina } from './python-formats.ts'
import { ALL_TEXT, PREFIX_TEXT, type ToolFormat } from './tool-format.ts'

/** Channels of `<|open|>` and `<|close|>` tags. */
const kimiK3: ToolFormat = {
  text: PREFIX_TEXT,
  isMarked: false,
  open: (out) => new ChannelTagsReader(out),
}

/** Typed frames; a call of an undeclared tool is dropped with its frame. */
const inkling: ToolFormat = {
  text: ALL_TEXT,
  isMarked: false,
  dropsUndeclared: true,
  open: (out) => new TypedFramesReader(out),
}

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

/** Aliases are other common names, such as those of engine flags. The first format whose marks a template contains wins. */
export const toolFormats: readonly NamedFormat[] = [
  row('passthrough', passthrough, null, ['plain']),
  row('seed_oss', pairs.seedOss, '<seed:tool_call>'),
  row('iquest', pairs.iquest, '<iquest_tool_call>'),
  row('qwen_xml', pairs.qwenXml, '<function=', ['qwen_coder', 'nemotron', 'qwen3_coder', 'qwen3_xml']),
  row('qwen3_tagged', pairs.qwenXml),
  row('qwen3_tagged_direct', pairs.qwen3TaggedDirect),
  row('minimax_m3', minimaxM3, ']<]minimax[>['),
  row('minimax_m2', pairs.minimaxM2, '<minimax:tool_call>', ['minimax-m2']),
  row('dots3', pairs.dots3, '<dots_function_call>'),
  row('step3', pairs.step3, '<steptml:invoke'),
  row('deepseek_v41', deepseekV41, '<｜DSML｜ calls>', ['deepseek_v4.1']),
  row('deepseek_v4', deepseekV4, '<｜DSML｜tool_calls>'),
  row('deepseek32', deepseek32, '<｜DSML｜function_calls>', ['deepseekv32', 'deepseek_v32']),
  row('deepseek', deepseek, ['<｜tool▁calls▁begin｜>', '```json'], ['deepseekv3', 'deepseek_v3']),
  row('deepseek31', deepseek31, '<｜tool▁calls▁begin｜>', ['deepseekv31', 'deepseek_v31']),
  row('kimik2', kimiK2, '<|tool_calls_section_begin|>', ['kimi_k2']),
  row('kimi_k3', kimiK3),
  row('inkling', inkling, '<|content_invoke_tool_json|>'),
  row('k2_horizon', pairs.k2Horizon, '<ifm|tool_call>'),
  row('hy_v4', pairs.hyV4, '<tool_calls:', ['hy4']),
  row('glm', pairs.glm, '<arg_key>', ['glm4', 'ling']),
  row('glm47_moe', pairs.glm, null, ['glm47']),
  row('glm45_moe', pairs.glm45Moe, null, ['glm45']),
  row('gemma4', gemma4, '<|tool_call>'),
  row('function_gemma', functionGemma, '<start_function_call>', ['functiongemma']),
  row('lfm2.5', lfm25, '<|tool_call_start|>', ['lfm2']),
  row('olmo3', olmo3, '<function_calls>'),
  row('minicpm5', pairs.minicpm5, '<param name='),
  row('llama_nemotron', llamaNemotron, '<TOOLCALL>'),
  row('mistral', mistral, '[TOOL_CALLS]', ['mistral_v13']),
  row('cohere', cohere, '<|START_ACTION|>'),
  row('sarashina', sarashina, '<|tool_calls|>'),
  row('pythonic', pythonic, '<|python_start|>', ['llama4_pythonic']),
  row('llama', llama, 'dictionary of argument name', ['llama3', 'llama3_json', 'llama4_json']),
  row('qwen', qwen, '<tool_call>', ['qwen25', 'qwen2.5', 'qwen3', 'hermes']),
  row('xlam', xlam),
  row('json', json),
]

const byName = new Map(
  toolFormats.flatMap((row) => [row.name, ...row.aliases].map((name) => [name, row] as const)),
)

/** Finds a format by its exact, case-sensitive name or alias. */
export function findToolFormat(name: string): NamedFormat | undefined {
  return byName.get(name)
}
