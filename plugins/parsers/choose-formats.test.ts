import { expect, test } from 'vitest'
import { chooseFormats } from './choose-formats.ts'
import { findToolFormat } from './formats/format-table.ts'
import { findReasoningFormat } from './reasoning/reasoning-table.ts'

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
]

test.each(rows)('parsers 7.3: %s is read as %s with %s', (model, tool, reasoning) => {
  expect(chooseFormats({ model })).toEqual({ tool, reasoning })
  if (tool !== null && tool !== 'harmony') expect(findToolFormat(tool)).toBeDefined()
  if (reasoning !== null && reasoning !== 'harmony') expect(findReasoningFormat(reasoning)).toBeDefined()
})

test('an organisation alone selects nothing', () => {
  expect(chooseFormats({ model: 'Qwen/embedding' })).toEqual({ tool: null, reasoning: null })
})

test('the class of the configuration decides before the id', () => {
  expect(chooseFormats({ model: 'qwen3', architectures: ['GptOssForCausalLM'] }).tool).toBe('harmony')
  expect(chooseFormats({ model: 'my-model', modelType: 'kimi_k3' }).tool).toBe('kimi_k3')
})

test('a template tells where the id does not', () => {
  const chatTemplate = '{% if tools %}<tool_call>\n{"name": ...}</tool_call>{% endif %}<think>'
  expect(chooseFormats({ model: 'house-model', chatTemplate })).toEqual({ tool: 'qwen', reasoning: 'base' })
  const xml = '<tool_call><function=x><parameter=y></tool_call>'
  expect(chooseFormats({ model: 'house-model', chatTemplate: xml }).tool).toBe('qwen_xml')
})
