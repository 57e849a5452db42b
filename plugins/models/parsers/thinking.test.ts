import { expect, test } from 'vitest'
import { thinkingOf } from './thinking.ts'

const TOGGLE =
  '{% if enable_thinking %}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
const OFF = '{% set thinking = false %}{% if thinking %}<think>{% endif %}'

test('reasoning effort none disables thinking, and an explicit toggle overrides it', () => {
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'none' }, null).isOn).toBe(false)
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'minimal' }, null).isOn).toBe(false)
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'high' }, null).isOn).toBe(true)
  const templateArguments = { enable_thinking: true }
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'none', templateArguments }, null).isOn).toBe(
    true,
  )
})

test('the end of the prompt determines whether the model starts inside reasoning', () => {
  const at = (prompt: string, templateArguments = {}) =>
    thinkingOf({ chatTemplate: TOGGLE, prompt, templateArguments }, null)
  expect(at('<|im_start|>assistant\n<think>\n')).toEqual({
    key: 'enable_thinking',
    requested: null,
    isOn: true,
    isReasoningOpen: true,
  })
  expect(at('<|im_start|>assistant\n')).toMatchObject({ isOn: true, isReasoningOpen: null })
  expect(at('<|im_start|>assistant\n<think>\n\n</think>\n\n')).toMatchObject({
    isOn: false,
    isReasoningOpen: false,
  })
  const off = { enable_thinking: false }
  expect(at('<|im_start|>assistant\n', off)).toMatchObject({
    requested: false,
    isOn: false,
    isReasoningOpen: false,
  })
})

test.each([
  ['<think:opensource>', '</think:opensource>'],
  ['[THINK]', '[/THINK]'],
  ['<seed:think>', '</seed:think>'],
  ['<|channel>thought\n', '<channel|>'],
  ['<|open|>think<|sep|>', '<|open|>response<|sep|>'],
])('a prompt ends inside reasoning after %s, and outside after %s', (start, end) => {
  expect(thinkingOf({ prompt: `user: x\n${start}` }, null).isReasoningOpen).toBe(true)
  expect(thinkingOf({ prompt: `user: x\n${start}${end}` }, null).isReasoningOpen).toBe(false)
})

test.each([
  ['<think>a</think>b\n<|im_start|>assistant\n<think>\nThe user wants', 'The user wants', true],
  ['<|im_start|>assistant\n<think>\n\n</think>\n\nIt is', 'It is', false],
  ['[THINK]Hm', 'Hm', true],
  ['<|im_start|>assistant\nIt is', 'It is', false],
  // The template trims the text.
  ['<|im_start|>assistant\n<think>\nThe user', ' The user ', true],
  // Marks of the text itself.
  ['<|im_start|>assistant\n<think>Hm', '<think>Hm', true],
  ['<|im_start|>assistant\n<think>Hm</think>It', '<think>Hm</think>It', false],
  // Marks that another message mentions.
  ['user\nWhat is <think>?<|im_start|>assistant\nIt is', 'It is', false],
])('whether %j, which continues %j, is inside reasoning: %s', (prompt, continued, expected) => {
  expect(thinkingOf({ prompt, continued }, null).isReasoningOpen).toBe(expected)
})

test('templates with thinking off by default, templates without a toggle, and unusual prompts', () => {
  expect(thinkingOf({ chatTemplate: OFF }, null)).toMatchObject({ key: 'thinking', isOn: false })
  expect(thinkingOf({ chatTemplate: OFF, templateArguments: { thinking: true } }, null).isOn).toBe(true)
  expect(thinkingOf({ chatTemplate: 'plain' }, null)).toEqual({
    key: null,
    requested: null,
    isOn: false,
    isReasoningOpen: null,
  })
  expect(thinkingOf({}, 'kimi_k3')).toMatchObject({ isOn: true, isReasoningOpen: true })
  expect(thinkingOf({}, 'deepseek_v4')).toMatchObject({ isOn: false, isReasoningOpen: false })
})
