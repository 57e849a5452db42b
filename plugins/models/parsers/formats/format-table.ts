/** Every tool-call format: its name, its aliases, and what its marks need. */
import { cohere } from './cohere.ts'
import { deepseek } from './deepseek.ts'
import { deepseek31 } from './deepseek31.ts'
import { deepseek32, deepseekV4, deepseekV41 } from './dsml.ts'
import { functionGemma, gemma4 } from './gemma.ts'
import { glm, glm45Moe, iquest, k2Horizon } from './glm.ts'
import { hyV4 } from './hy-v4.ts'
import { inkling } from './inkling.ts'
import { json, xlam } from './json.ts'
import { kimiK2 } from './kimi-k2.ts'
import { kimiK3 } from './kimi-k3.ts'
import { llama } from './llama.ts'
import { llamaNemotron } from './llama-nemotron.ts'
import { minicpm5 } from './minicpm5.ts'
import { dots3, minimaxM2 } from './minimax.ts'
import { minimaxM3 } from './minimax-m3.ts'
import { mistral } from './mistral.ts'
import { passthrough } from './passthrough.ts'
import { lfm25, olmo3, pythonic } from './pythonic.ts'
import { qwen } from './qwen.ts'
import { qwen3TaggedDirect, qwenXml, seedOss } from './qwen-xml.ts'
import { sarashina } from './sarashina.ts'
import { step3 } from './step3.ts'
import type { ToolFormat } from './tool-format.ts'

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
  row('seed_oss', seedOss, '<seed:tool_call>'),
  row('iquest', iquest, '<iquest_tool_call>'),
  row('qwen_xml', qwenXml, '<function=', ['qwen_coder', 'nemotron', 'qwen3_coder', 'qwen3_xml']),
  row('qwen3_tagged', qwenXml),
  row('qwen3_tagged_direct', qwen3TaggedDirect),
  row('minimax_m3', minimaxM3, ']<]minimax[>['),
  row('minimax_m2', minimaxM2, '<minimax:tool_call>', ['minimax-m2']),
  row('dots3', dots3, '<dots_function_call>'),
  row('step3', step3, '<steptml:invoke'),
  row('deepseek_v41', deepseekV41, '<｜DSML｜ calls>', ['deepseek_v4.1']),
  row('deepseek_v4', deepseekV4, '<｜DSML｜tool_calls>'),
  row('deepseek32', deepseek32, '<｜DSML｜function_calls>', ['deepseekv32', 'deepseek_v32']),
  row('deepseek', deepseek, ['<｜tool▁calls▁begin｜>', '```json'], ['deepseekv3', 'deepseek_v3']),
  row('deepseek31', deepseek31, '<｜tool▁calls▁begin｜>', ['deepseekv31', 'deepseek_v31']),
  row('kimik2', kimiK2, '<|tool_calls_section_begin|>', ['kimi_k2']),
  row('kimi_k3', kimiK3),
  row('inkling', inkling, '<|content_invoke_tool_json|>'),
  row('k2_horizon', k2Horizon, '<ifm|tool_call>'),
  row('hy_v4', hyV4, '<tool_calls:', ['hy4']),
  row('glm', glm, '<arg_key>', ['glm4', 'ling']),
  row('glm47_moe', glm, null, ['glm47']),
  row('glm45_moe', glm45Moe, null, ['glm45']),
  row('gemma4', gemma4, '<|tool_call>'),
  row('function_gemma', functionGemma, '<start_function_call>', ['functiongemma']),
  row('lfm2.5', lfm25, '<|tool_call_start|>', ['lfm2']),
  row('olmo3', olmo3, '<function_calls>'),
  row('minicpm5', minicpm5, '<param name='),
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
