import { expect, test } from 'vitest'
import { thinkingOf } from './thinking.ts'

const TOGGLE =
  '{% if enable_thinking %}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
const OPENS =
  '{% if enable_thinking %}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}'
const OFF = '{% set thinking = false %}{% if thinking %}<think>{% endif %}'

test('parsers 6.7 #78: an effort of none switches thinking off, an explicit toggle wins', () => {
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'none' }, null).isOn).toBe(false)
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'minimal' }, null).isOn).toBe(false)
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'high' }, null).isOn).toBe(true)
  const templateArguments = { enable_thinking: true }
  expect(thinkingOf({ chatTemplate: TOGGLE, reasoningEffort: 'none', templateArguments }, null).isOn).toBe(
    true,
  )
})

test('parsers 2.17: a template that opens the tag leaves the model inside of it', () => {
  expect(thinkingOf({ chatTemplate: OPENS }, null)).toEqual({
    key: 'enable_thinking',
    isOn: true,
    isReasoningOpen: true,
  })
  expect(thinkingOf({ chatTemplate: TOGGLE }, null).isReasoningOpen).toBeNull()
  const templateArguments = { enable_thinking: false }
  expect(thinkingOf({ chatTemplate: OPENS, templateArguments }, null).isReasoningOpen).toBe(false)
})

test('parsers 2.17: default off, no toggle, and prompts that no template writes', () => {
  expect(thinkingOf({ chatTemplate: OFF }, null)).toMatchObject({ key: 'thinking', isOn: false })
  expect(thinkingOf({ chatTemplate: OFF, templateArguments: { thinking: true } }, null).isOn).toBe(true)
  expect(thinkingOf({ chatTemplate: 'plain' }, null)).toEqual({
    key: null,
    isOn: false,
    isReasoningOpen: null,
  })
  expect(thinkingOf({}, 'kimi_k3')).toMatchObject({ isOn: true, isReasoningOpen: true })
  expect(thinkingOf({}, 'deepseek_v4')).toMatchObject({ isOn: false, isReasoningOpen: false })
})
