import { expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { chooseFormats, parserProblems } from './choose-formats.ts'
import { parsersConfig } from './config.ts'
import { findToolFormat, toolFormats } from './formats/format-table.ts'
import { findReasoningFormat, reasoningFormats } from './reasoning/reasoning-table.ts'

const rows: [model: string, tool: string | null, reasoning: string | null][] = [
  ['openai/gpt-oss-20b', 'harmony', 'harmony'],
  ['gpt-4o', 'json', null],
  ['gpt-5', null, null],
  ['google/gemma-3-27b-it', 'json', null],
  ['mistralai/Mixtral-8x7B-v0.1', 'mistral', null],
  ['mistralai/Devstral-Small', 'mistral', null],
  ['Qwen/Qwen2.5-Coder-7B', 'qwen', 'qwen3'],
  ['Qwen/QwQ-32B', 'qwen', 'qwen3_thinking'],
  ['Qwen/Qwen3-8B', 'qwen', 'qwen3'],
  ['Qwen/Qwen3-4B-Thinking-2507', 'qwen', 'qwen3_thinking'],
  ['Qwen/Qwen3-Coder-480B-A35B-Instruct', 'qwen_xml', 'qwen3'],
  ['Qwen/Qwen3.6-35B', 'qwen_xml', 'qwen3'],
  ['meta-llama/Llama-4-Scout-17B', 'pythonic', null],
  ['meta-llama/Llama-3.1-8B-Instruct', 'llama', null],
  ['meta-llama/Meta-Llama-3-8B', 'json', null],
  ['deepseek-ai/DeepSeek-R1-0528', 'deepseek', 'deepseek_r1'],
  ['deepseek-ai/DeepSeek-R1-Distill-Qwen-7B', 'qwen', 'deepseek_r1'],
  ['deepseek-ai/DeepSeek-V3-0324', 'deepseek', null],
  ['deepseek-v3-1', 'deepseek31', 'deepseek_v31'],
  ['deepseek-ai/DeepSeek-V3.2-Exp', 'deepseek31', 'deepseek_v31'],
  ['deepseek-ai/DeepSeek-V3.2-Speciale', 'deepseek32', 'deepseek_v31'],
  ['deepseek-ai/DeepSeek-V4-Flash', 'deepseek_v4', 'deepseek_v4'],
  ['deepseek-ai/DeepSeek-V4.1', 'deepseek_v41', 'deepseek_v41'],
  ['zai-org/GLM-4.5-Air', 'glm45_moe', 'glm45'],
  ['zai-org/GLM-5', 'glm47_moe', 'glm45'],
  ['moonshotai/Kimi-K2-Instruct', 'kimik2', 'kimi'],
  ['moonshotai/Kimi-K2.5', 'kimik2', 'kimi_k25'],
  ['moonshotai/Kimi-VL-A3B', null, 'kimi'],
  ['stepfun-ai/Step-3.5-Flash', 'step3', 'step3'],
  ['MiniMaxAI/MiniMax-M2', 'minimax_m2', 'minimax'],
  ['MiniMaxAI/MiniMax-Text-01', 'minimax_m2', null],
  ['CohereLabs/c4ai-command-r-plus', 'cohere', 'cohere_cmd'],
  ['nvidia/NVIDIA-Nemotron-3-Super-120B', 'qwen_xml', 'nano_v3'],
  ['microsoft/phi-4', null, null],
  ['openai/gpt-oss-120b', 'harmony', 'harmony'],
  ['gpt-4.1-mini', 'json', null],
  ['gpt-3.5-turbo', 'json', null],
  ['o3', null, null],
  ['claude-opus-4', 'json', null],
  ['mistralai/Mistral-7B-Instruct-v0.3', 'mistral', null],
  ['mistralai/Ministral-8B', 'mistral', null],
  ['mistralai/Magistral-Small', 'mistral', 'mistral_v13'],
  ['Qwen/Qwen3-235B-A22B', 'qwen', 'qwen3'],
  ['Qwen/Qwen3-Next-80B', 'qwen', 'qwen3'],
  ['qwen3-thinking-30b', 'qwen', 'qwen3_thinking'],
  ['Qwen/Qwen3.5-4B', 'qwen_xml', 'qwen3'],
  ['qwen3.5-72b', 'qwen_xml', 'qwen3'],
  ['meta-llama/Llama-3.2-1B-Instruct', 'llama', null],
  ['codellama-7b', 'json', null],
  ['TinyLlama-1.1B', 'json', null],
  ['deepseek-ai/DeepSeek-R1-Distill-Llama-8B', 'llama', 'deepseek_r1'],
  ['deepseek-ai/DeepSeek-V3', 'deepseek', null],
  ['deepseek-ai/DeepSeek-V3.1-Terminus', 'deepseek31', 'deepseek_v31'],
  ['deepseek-ai/DeepSeek-V3.2', 'deepseek32', 'deepseek_v31'],
  ['deepseek-ai/DeepSeek-V2-Lite', null, null],
  ['zai-org/GLM-4.6', 'glm45_moe', 'glm45'],
  ['zai-org/GLM-4.7', 'glm47_moe', 'glm45'],
  ['glm-5.2-fp8', 'glm47_moe', 'glm45'],
  ['glm45-v2', 'glm45_moe', 'glm45'],
  ['glm47', 'glm47_moe', 'glm45'],
  ['THUDM/glm-4-9b-chat', 'json', null],
  ['moonshotai/Kimi-K2-Thinking', 'kimik2', 'kimi_thinking'],
  ['moonshotai/Kimi-K3', 'kimi_k3', 'kimi_k3'],
  ['kimi_k3', 'kimi_k3', 'kimi_k3'],
  ['moonshotai/Kimi-Dev-72B', null, 'kimi'],
  ['stepfun-ai/step3', 'step3', 'step3'],
  ['mm-m2', 'minimax_m2', 'minimax'],
  ['CohereLabs/command-a-03-2025', 'cohere', 'cohere_cmd'],
  ['CohereLabs/aya-expanse-8b', 'cohere', 'cohere_cmd'],
  ['sbintuitions/sarashina2.2-3b-instruct', 'sarashina', null],
  ['org/Inkling-Chat', 'inkling', 'inkling'],
  ['nvidia/NVIDIA-Nemotron-Nano-9B-v2', 'llama_nemotron', 'nano_v3'],
  ['ibm-granite/granite-3.3-8b-instruct', null, null],
  ['baidu/ERNIE-4.5-21B-A3B-PT', null, null],
  ['tencent/Hunyuan-A13B-Instruct', null, null],
  // Models of November 2026.
  ['Qwen/Qwen3.8-Max', 'qwen_xml', 'qwen3'],
  ['MiniMaxAI/MiniMax-M3', 'minimax_m3', 'minimax_m3'],
  ['mm-m3', 'minimax_m3', 'minimax_m3'],
  ['google/gemma4-27b', 'gemma4', 'gemma4'],
  ['google/gemma-4-27b-it', 'gemma4', 'gemma4'],
  ['deepseek-v41', 'deepseek_v41', 'deepseek_v41'],
  ['tencent/Hy-V4', 'hy_v4', 'hy_v4'],
  ['nvidia/Nemotron-3-Nano', 'qwen_xml', 'nano_v3'],
  ['ByteDance-Seed/Seed-OSS-36B-Instruct', 'seed_oss', 'seed_oss'],
  ['LiquidAI/LFM2.5-1.2B', 'lfm2.5', 'base'],
  ['allenai/Olmo-3-32B-Think', 'olmo3', 'base'],
  ['inclusionAI/Ling-1T', 'glm', 'qwen3'],
  ['inclusionAI/Ring-1T', 'glm', 'qwen3'],
  ['google/functiongemma-270m-it', 'function_gemma', null],
  ['openbmb/MiniCPM5-8B', 'minicpm5', 'base'],
  ['Salesforce/xLAM-2-8b', 'xlam', null],
  ['IQuestLab/IQuest-Coder-V1-40B', 'iquest', 'qwen3'],
  ['rednote-hilab/dots3', 'dots3', 'base'],
  ['LLM360/K2-Horizon', 'k2_horizon', 'k2_horizon'],
  // Names with the same ending as a known family.
  ['Nexusflow/Starling-LM-7B-beta', null, null],
  ['acme/wiring-helper', null, null],
  ['acme/papaya-7b', null, null],
]

test('a response template is used if neither class nor id is known, before the marks of the template', () => {
  const facts = { chatTemplate: '<think>', hasResponseTemplate: true }
  expect(chooseFormats({ ...facts, model: 'acme/one' })).toEqual({ tool: 'hf', reasoning: 'hf' })
  expect(chooseFormats({ ...facts, model: 'acme/one', hasResponseTemplate: false }).reasoning).toBe('base')
  expect(chooseFormats({ ...facts, model: 'Qwen/Qwen3-8B' }).tool).toBe('qwen')
  expect(chooseFormats({ ...facts, model: 'one', modelType: 'gpt_oss' }).tool).toBe('harmony')
})

test.each(rows)('%s uses %s with %s', (model, tool, reasoning) => {
  const chosen = chooseFormats({ model })
  const known = (name: string | null, find: (name: string) => { readonly name: string } | undefined) =>
    name === null || name === 'harmony' ? name : find(name)?.name
  expect([known(chosen.tool, findToolFormat), known(chosen.reasoning, findReasoningFormat)]).toEqual([
    tool,
    reasoning,
  ])
})

// `hf` depends on the tokenizer: it is in no table, and has its own tests.
test('every name in both lists is known', () => {
  const tools =
    'passthrough json mistral qwen qwen_xml qwen_coder pythonic llama deepseek deepseek31 deepseek32 deepseek_v4 ' +
    'glm45_moe glm47_moe step3 sarashina kimik2 kimi_k3 inkling minimax_m2 cohere ' +
    'deepseek_v41 gemma4 hy_v4 minimax_m3 nemotron ' +
    'function_gemma k2_horizon lfm2.5 ling glm glm4 iquest llama_nemotron minicpm5 mistral_v13 olmo3 seed_oss xlam ' +
    'dots3 hy4 qwen2.5 qwen3 qwen3_tagged qwen3_tagged_direct plain'
  expect(tools.split(' ').filter((name) => findToolFormat(name) === undefined)).toEqual([])
  const reasoning =
    'base deepseek_r1 deepseek_v31 qwen3 qwen3_thinking glm45 step3 minimax kimi kimi_k25 kimi_thinking kimi_k3 ' +
    'inkling nano_v3 cohere_cmd deepseek_v4 deepseek_v41 gemma4 hy_v4 minimax_m3 ' +
    'mistral_v13 seed_oss olmo3 qwen3_tagged qwen3_tagged_direct iquest ling glm glm4 hy4 k2_horizon dots3 lfm2.5 ' +
    'llama_nemotron minicpm5'
  expect(reasoning.split(' ').filter((name) => findReasoningFormat(name) === undefined)).toEqual([])
})

test('an organisation name selects no format', () => {
  expect(chooseFormats({ model: 'Qwen/embedding' })).toEqual({ tool: null, reasoning: null })
})

test('the class in the configuration takes precedence over the id', () => {
  expect(chooseFormats({ model: 'qwen3', architectures: ['GptOssForCausalLM'] }).tool).toBe('harmony')
  expect(chooseFormats({ model: 'my-model', modelType: 'kimi_k3' }).tool).toBe('kimi_k3')
})

test.each([
  ['DeepseekV41ForCausalLM', 'deepseek_v41', 'deepseek_v41'],
  ['deepseek_v41', 'deepseek_v41', 'deepseek_v41'],
  ['DeepseekV4ForCausalLM', 'deepseek_v4', 'deepseek_v4'],
  ['DeepseekV32ForCausalLM', 'deepseek32', 'deepseek_v31'],
  ['GlmMoeDsaForCausalLM', 'glm47_moe', 'glm45'],
  ['MiniMaxM2ForCausalLM', 'minimax_m2', 'minimax'],
  ['SeedOssForCausalLM', 'seed_oss', 'seed_oss'],
  ['HYV4ForCausalLM', 'hy_v4', 'hy_v4'],
  ['Gemma4ForConditionalGeneration', 'gemma4', 'gemma4'],
  ['qwen3_5', 'qwen_xml', 'qwen3'],
])('a model with any name uses the formats of its class or type %s', (name, tool, reasoning) => {
  const own = /For/.test(name) ? { architectures: ['Unknown', name] } : { modelType: name }
  expect(chooseFormats({ model: 'house-model', ...own })).toEqual({ tool, reasoning })
  expect(findToolFormat(tool)?.name).toBe(tool)
  expect(findReasoningFormat(reasoning)?.name).toBe(reasoning)
})

test('the chat template decides if the id is unknown', () => {
  const chatTemplate = '{% if tools %}<tool_call>\n{"name": ...}</tool_call>{% endif %}<think>'
  expect(chooseFormats({ model: 'house-model', chatTemplate })).toEqual({ tool: 'qwen', reasoning: 'base' })
  const xml = '<tool_call><function=x><parameter=y></tool_call>'
  expect(chooseFormats({ model: 'house-model', chatTemplate: xml }).tool).toBe('qwen_xml')
})

const problemsOf = (section: object) => [...parserProblems(defineValidator(parsersConfig).parse(section))]

test('an unknown parser is rejected with the list of known names', () => {
  const [tool, reasoning] = problemsOf({ toolParser: 'qwenn', reasoningParser: 'deep' })
  expect(tool.path).toEqual(['toolParser'])
  expect(tool.text).toMatch(/^must be the name of a tool parser \(got "qwenn"\), one of /)
  for (const { name } of toolFormats) expect(tool.text).toContain(name)
  expect(reasoning.path).toEqual(['reasoningParser'])
  for (const { name } of reasoningFormats) expect(reasoning.text).toContain(name)
})

test.each(['toolParser', 'reasoningParser'])('every listed name of %s is accepted', (setting) => {
  const [{ text }] = problemsOf({ [setting]: 'nobodys' })
  const names = /one of (.*)$/.exec(text)?.[1].split(', ') ?? []
  expect(names.length).toBeGreaterThan(10)
  for (const known of names) expect(problemsOf({ [setting]: known })).toEqual([])
})
