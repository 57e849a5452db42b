import { describe, expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { ChatRequest } from '../wire/chat.ts'
import { checkChatRules } from './request-rules.ts'

const validator = defineValidator(ChatRequest)
const minimal = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }

/** The code and field of the rejection; null if the request passes. */
function verdict(fields: object): string | null {
  try {
    checkChatRules(validator.parse(structuredClone({ ...minimal, ...fields })))
    return null
  } catch (error) {
    const { code, param, status } = error as { code: string; param: string | null; status: number }
    expect(status).toBe(400)
    return param === null ? code : `${code} ${param}`
  }
}

const tool = (name: string) => ({ type: 'function', function: { name } })
const jsonSchema = (name: string) => ({ type: 'json_schema', json_schema: { name, schema: {} } })

test('a minimal chat request passes, also with unknown fields and nulls', () => {
  expect(verdict({})).toBeNull()
  expect(
    verdict({ made_up: { by: 'us' }, temperature: null, stream: null, stop: null, tools: null }),
  ).toBeNull()
})

describe('ranges of single fields', () => {
  test.each<[object, string]>([
    [{ model: 7 }, 'model'],
    [{ messages: [] }, 'messages'],
    [{ messages: 'hi' }, 'messages'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ max_completion_tokens: 4294967296 }, 'max_completion_tokens'],
    [{ temperature: -0.1 }, 'temperature'],
    [{ temperature: 2.1 }, 'temperature'],
    [{ top_p: 0 }, 'top_p'],
    [{ top_p: 1.1 }, 'top_p'],
    [{ n: 0 }, 'n'],
    [{ n: 11 }, 'n'],
    [{ frequency_penalty: -2.1 }, 'frequency_penalty'],
    [{ presence_penalty: 2.1 }, 'presence_penalty'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ stop: ['a', ''] }, 'stop.1'],
    [{ stop: '' }, 'stop'],
    [{ top_logprobs: 21, logprobs: true }, 'top_logprobs'],
    [{ top_k: 0 }, 'top_k'],
    [{ top_k: -2 }, 'top_k'],
    [{ min_p: 1.1 }, 'min_p'],
    [{ repetition_penalty: 2.1 }, 'repetition_penalty'],
    [{ stop_token_ids: [-1] }, 'stop_token_ids.0'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ tools: [{ type: 'custom', function: { name: 'f' } }] }, 'tools.0.custom'],
    [{ tool_choice: 'sometimes' }, 'tool_choice'],
    [{ response_format: { type: 'xml' } }, 'response_format.type'],
  ])('%j', (fields, field) => {
    expect(verdict(fields)).toBe(`invalid_field ${field}`)
  })

  test.each([
    { temperature: 0 },
    { temperature: 2 },
    { top_p: 1 },
    { n: 10 },
    { stop: ['a', 'b', 'c', 'd'] },
    { stop: 'x' },
    { top_logprobs: 20, logprobs: true },
    { top_k: -1 },
    { top_k: 1 },
    { reasoning_effort: 'high' },
    { reasoning_effort: 0.5 },
  ])('%j is at the limit and passes', (fields) => {
    expect(verdict(fields)).toBeNull()
  })
})

describe('messages', () => {
  test.each<[object, string]>([
    [{ role: 'robot', content: 'x' }, 'messages.0.role'],
    [{ content: 'x' }, 'messages.0.role'],
    [{ role: 'user', content: '' }, 'messages.0.content'],
    [{ role: 'user', content: [] }, 'messages.0.content'],
    [{ role: 'user' }, 'messages.0.content'],
    [{ role: 'user', content: [{ type: 'text' }] }, 'messages.0.content.0.text'],
    [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }, 'messages.0.content.0.image_url.url'],
    [{ role: 'tool', content: 'x' }, 'messages.0.tool_call_id'],
    [{ role: 'function', content: 'x' }, 'messages.0.name'],
  ])('%j is rejected', (message, field) => {
    expect(verdict({ messages: [message] })).toBe(`invalid_field ${field}`)
  })

  test.each([
    { role: 'system', content: 'x' },
    { role: 'developer', content: [{ type: 'text', text: 'x' }] },
    { role: 'assistant' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', ...tool('f') }] },
    { role: 'tool', content: 'x', tool_call_id: 'c' },
    { role: 'function', content: 'x', name: 'f' },
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }] },
  ])('%j passes', (message) => {
    expect(verdict({ messages: [message] })).toBeNull()
  })
})

describe('rules between fields', () => {
  test.each<[object, string]>([
    [{ top_logprobs: 1 }, 'top_logprobs_requires_logprobs top_logprobs'],
    [{ top_logprobs: 1, logprobs: null }, 'top_logprobs_requires_logprobs top_logprobs'],
    [{ stream_options: {} }, 'stream_options_requires_stream stream_options'],
    [{ min_tokens: 5, max_completion_tokens: 4 }, 'min_tokens_exceeds_max min_tokens'],
    [{ min_tokens: 5, max_tokens: 4 }, 'min_tokens_exceeds_max min_tokens'],
    [{ regex: 'a', ebnf: 'b' }, 'multiple_constraints ebnf'],
    [{ regex: 'a', response_format: { type: 'json_object' } }, 'regex_conflicts_with_json regex'],
    [{ regex: 'a', response_format: jsonSchema('s') }, 'regex_conflicts_with_json regex'],
    [{ ebnf: 'a', response_format: { type: 'json_object' } }, 'ebnf_conflicts_with_json ebnf'],
    [{ response_format: jsonSchema('') }, 'json_schema_name_empty response_format.json_schema.name'],
    [{ tool_choice: 'auto' }, 'tool_choice_requires_tools tool_choice'],
    [{ tool_choice: 'required', tools: [] }, 'tool_choice_requires_tools tool_choice'],
    [{ tool_choice: tool('g'), tools: [tool('f')] }, 'tool_choice_function_not_found tool_choice'],
    [
      { tool_choice: { type: 'allowed_tools', mode: 'none', tools: [] }, tools: [tool('f')] },
      'tool_choice_invalid_mode tool_choice.mode',
    ],
    [
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'mcp' }] }, tools: [tool('f')] },
      'tool_choice_invalid_tool_type tool_choice.tools.0',
    ],
    [
      {
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [tool('f'), tool('g')] },
        tools: [tool('f')],
      },
      'tool_choice_tool_not_found tool_choice.tools.1',
    ],
  ])('%j', (fields, expected) => {
    expect(verdict(fields)).toBe(expected)
  })

  test.each([
    { tool_choice: 'none' },
    { tool_choice: 'auto', tools: [tool('f')] },
    { tool_choice: tool('f'), functions: [{ name: 'f' }] },
    { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [tool('f')] }, tools: [tool('f')] },
    { stream: true, stream_options: { include_usage: true } },
    { min_tokens: 4, max_completion_tokens: 4 },
    { min_tokens: 9, max_completion_tokens: 10, max_tokens: 1 },
    { regex: 'a', response_format: { type: 'text' } },
    { logprobs: true, top_logprobs: 0 },
  ])('%j passes', (fields) => {
    expect(verdict(fields)).toBeNull()
  })
})
