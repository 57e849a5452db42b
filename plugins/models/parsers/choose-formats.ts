/** Which formats a model writes: by its class, its id, its template. */

import type { SettingProblem } from '#kernel'
import type { ParsersConfig } from './config.ts'
import { findToolFormat, toolFormats } from './formats/format-table.ts'
import { findReasoningFormat, hasNoReasoning, reasoningFormats } from './reasoning/reasoning-table.ts'

export interface ModelFacts {
  readonly model: string
  readonly chatTemplate?: string | null
  readonly architectures?: readonly string[]
  readonly modelType?: string | null
  /** The tokenizer has a response template that can be used. */
  readonly hasResponseTemplate?: boolean
}

/** Null if nothing is to be parsed. */
export interface ChosenFormats {
  readonly tool: string | null
  readonly reasoning: string | null
}

export const HARMONY = 'harmony'
/** Reads by the response template of the tokenizer. */
export const TEMPLATE_FORMAT = 'hf'
/** Names of Harmony in engines. */
export const HARMONY_NAMES: ReadonlySet<string> = new Set(['gpt-oss', 'gpt_oss', 'openai', 'openai_gptoss'])

type Row = readonly [stems: readonly string[], tool: string | null, reasoning: string | null]

/** Classes and types of model configurations, of families with one format. */
const classRows: readonly Row[] = [
  [['GptOssForCausalLM', 'gpt_oss'], HARMONY, HARMONY],
  [['DeepseekV32ForCausalLM', 'deepseek_v32'], 'deepseek32', 'deepseek_v31'],
  [['DeepseekV41ForCausalLM', 'deepseek_v41'], 'deepseek_v41', 'deepseek_v41'],
  [
    ['DeepseekV4ForCausalLM', 'DeepseekV4ForConditionalGeneration', 'deepseek_v4'],
    'deepseek_v4',
    'deepseek_v4',
  ],
  [['KimiK25ForConditionalGeneration', 'Kimi_K25ForConditionalGeneration', 'kimi_k25'], 'kimik2', 'kimi_k25'],
  [['KimiK3ForConditionalGeneration', 'kimi_k3'], 'kimi_k3', 'kimi_k3'],
  [['GlmMoeDsaForCausalLM', 'glm_moe_dsa'], 'glm47_moe', 'glm45'],
  [['MiniMaxM2ForCausalLM', 'minimax_m2'], 'minimax_m2', 'minimax'],
  [['MiniMaxM3SparseForConditionalGeneration', 'minimax_m3_vl'], 'minimax_m3', 'minimax_m3'],
  [['SeedOssForCausalLM', 'seed_oss'], 'seed_oss', 'seed_oss'],
  [['HYV4ForCausalLM', 'HYV4VLForConditionalGeneration', 'hy_v4', 'hy_v4_vl'], 'hy_v4', 'hy_v4'],
  [['Gemma4ForCausalLM', 'Gemma4ForConditionalGeneration', 'gemma4', 'gemma4_text'], 'gemma4', 'gemma4'],
  [
    ['Qwen3_5ForConditionalGeneration', 'Qwen3_5MoeForConditionalGeneration', 'qwen3_5', 'qwen3_5_moe'],
    'qwen_xml',
    'qwen3',
  ],
]
const byClass: ReadonlyMap<string, ChosenFormats> = new Map(
  classRows.flatMap(([names, tool, reasoning]) => names.map((name) => [name, { tool, reasoning }] as const)),
)

/**
 * Parts of model ids, lower-case, the more special ones first: the first row of which one part is in the id decides.
 * Short ones that are the end of other words count at the beginning only, `^` before them.
 */
const byId: readonly Row[] = [
  [['gpt-oss', 'gpt_oss'], HARMONY, HARMONY],
  [['deepseek-r1-distill-qwen'], 'qwen', 'deepseek_r1'],
  [['deepseek-r1-distill-llama'], 'llama', 'deepseek_r1'],
  [['deepseek-r1'], 'deepseek', 'deepseek_r1'],
  [['deepseek-v3.2-exp', 'deepseek-v3-2-exp'], 'deepseek31', 'deepseek_v31'],
  [['deepseek-v3.2', 'deepseek-v3-2'], 'deepseek32', 'deepseek_v31'],
  [['deepseek-v3.1', 'deepseek-v3-1'], 'deepseek31', 'deepseek_v31'],
  [['deepseek-v4.1', 'deepseek-v41', 'deepseek-v4-1'], 'deepseek_v41', 'deepseek_v41'],
  [['deepseek-v4'], 'deepseek_v4', 'deepseek_v4'],
  [['deepseek-v3'], 'deepseek', null],
  [['nemotron-3'], 'qwen_xml', 'nano_v3'],
  [
    ['llama-3_1-nemotron', 'llama-3.1-nemotron', 'llama-3_3-nemotron', 'llama-3.3-nemotron'],
    'llama_nemotron',
    'nano_v3',
  ],
  [['nemotron-nano', 'nemotron-super', 'nano-v3'], 'llama_nemotron', 'nano_v3'],
  [['qwq'], 'qwen', 'qwen3_thinking'],
  [['qwen3-coder', 'qwen3.5', 'qwen3.6', 'qwen3.8'], 'qwen_xml', 'qwen3'],
  [['qwen2.5', 'qwen2-', 'qwen1'], 'qwen', 'qwen3'],
  [['glm-4.5', 'glm-4.6', 'glm45', 'glm46'], 'glm45_moe', 'glm45'],
  [['glm-4.7', 'glm47', 'glm-5'], 'glm47_moe', 'glm45'],
  [['glm-'], 'json', null],
  [['kimi-k2.5'], 'kimik2', 'kimi_k25'],
  [['kimi-k2-thinking'], 'kimik2', 'kimi_thinking'],
  [['kimi-k2'], 'kimik2', 'kimi'],
  [['kimi-k3', 'kimi_k3'], 'kimi_k3', 'kimi_k3'],
  [['kimi'], null, 'kimi'],
  [['step3', 'step-3'], 'step3', 'step3'],
  [['minimax-m3', 'mm-m3'], 'minimax_m3', 'minimax_m3'],
  [['minimax-text'], 'minimax_m2', null],
  [['minimax', 'mm-m2'], 'minimax_m2', 'minimax'],
  [['command-r', 'command-a', 'c4ai-command', 'cohere', '^aya-'], 'cohere', 'cohere_cmd'],
  [['inkling'], 'inkling', 'inkling'],
  [['sarashina'], 'sarashina', null],
  [['hy-v4', 'hy4', 'hunyuan-v4'], 'hy_v4', 'hy_v4'],
  [['seed-oss'], 'seed_oss', 'seed_oss'],
  [['k2-horizon'], 'k2_horizon', 'k2_horizon'],
  [['iquest'], 'iquest', 'iquest'],
  [['dots3', 'dots.3'], 'dots3', 'base'],
  [['minicpm5'], 'minicpm5', 'base'],
  [['lfm2'], 'lfm2.5', 'base'],
  [['olmo-3', 'olmo3'], 'olmo3', 'base'],
  [['xlam'], 'xlam', null],
  [['^ling-', '^ring-'], 'ling', 'ling'],
  [['functiongemma', 'function-gemma'], 'function_gemma', null],
  [['gemma4', 'gemma-4'], 'gemma4', 'gemma4'],
  [['magistral'], 'mistral', 'mistral_v13'],
  [['mistral', 'mixtral', 'ministral', 'devstral'], 'mistral', null],
  [['llama-4'], 'pythonic', null],
  [['llama-3.1', 'llama-3.2', 'llama-3.3'], 'llama', null],
  [['gpt-4', 'gpt-3.5', 'claude-', 'gemini-', 'palm-', 'gemma-', 'llama-'], 'json', null],
  [['qwen'], 'qwen', 'qwen3'],
]

/**
 * The class decides before the id, the last part of the id before the whole, and the template only where the id says
 * nothing: the name of an organisation alone is no model.
 */
export function chooseFormats(facts: ModelFacts): ChosenFormats {
  for (const name of [...(facts.architectures ?? []), facts.modelType ?? '']) {
    const known = byClass.get(name)
    if (known !== undefined) return known
  }
  const id = facts.model.toLowerCase()
  const known = byParts(id.slice(id.lastIndexOf('/') + 1))
  if (known !== null) return known
  // A response template is more precise than the marks of a chat template.
  if (facts.hasResponseTemplate === true) return { tool: TEMPLATE_FORMAT, reasoning: TEMPLATE_FORMAT }
  return byTemplate(facts.chatTemplate ?? '')
}

function byParts(id: string): ChosenFormats | null {
  const row = byId.find(([stems]) => stems.some((stem) => isIn(stem, id)))
  if (row === undefined) return null
  const [, tool, reasoning] = row
  const isThinking = reasoning === 'qwen3' && id.includes('thinking')
  return { tool, reasoning: isThinking ? 'qwen3_thinking' : reasoning }
}

function isIn(stem: string, id: string): boolean {
  return stem.startsWith('^') ? id.startsWith(stem.slice(1)) : id.includes(stem)
}

/** Marks of reasoning that identify the format. */
const reasoningMarks: readonly (readonly [mark: string, name: string])[] = [
  ['<|channel|>analysis', HARMONY],
  ['<mm:think>', 'minimax_m3'],
  ['<seed:think>', 'seed_oss'],
  ['<ifm|think>', 'k2_horizon'],
  ['<|START_THINKING|>', 'cohere_cmd'],
  ['[THINK]', 'mistral_v13'],
  ['<|channel>thought', 'gemma4'],
  ['◁think▷', 'kimi'],
  ['<|content_thinking|>', 'inkling'],
  ['<think>', 'base'],
]

function byTemplate(template: string): ChosenFormats {
  if (template === '') return { tool: null, reasoning: null }
  const reasoning = reasoningMarks.find(([mark]) => template.includes(mark))?.[1] ?? null
  if (reasoning === HARMONY) return { tool: HARMONY, reasoning }
  const tool = toolFormats.find(
    ({ templateMarks }) => templateMarks.length > 0 && templateMarks.every((mark) => template.includes(mark)),
  )
  return { tool: tool?.name ?? null, reasoning }
}

/** Formats that depend on the model, not on a name. */
const ofModel: ReadonlySet<string> = new Set([HARMONY, TEMPLATE_FORMAT])

export function* parserProblems({ toolParser, reasoningParser }: ParsersConfig): Generator<SettingProblem> {
  if (toolParser !== null && !ofModel.has(toolParser) && findToolFormat(toolParser) === undefined)
    yield { path: ['toolParser'], text: unknown('tool', toolParser, [...ofModel, ...namesOf(toolFormats)]) }
  if (reasoningParser === null || hasNoReasoning(reasoningParser) || ofModel.has(reasoningParser)) return
  if (findReasoningFormat(reasoningParser) === undefined)
    yield {
      path: ['reasoningParser'],
      text: unknown('reasoning', reasoningParser, [...ofModel, 'passthrough', ...namesOf(reasoningFormats)]),
    }
}

function namesOf(formats: readonly { readonly name: string }[]): string[] {
  return formats.map(({ name }) => name)
}

/** @param names names without aliases */
function unknown(kind: 'tool' | 'reasoning', given: string, names: readonly string[]): string {
  const list = [...new Set(names)].sort().join(', ')
  return `must be the name of a ${kind} parser (got ${JSON.stringify(given)}), one of ${list}`
}
