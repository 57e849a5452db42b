import { expect, test } from 'vitest'
import type { ChatRequest } from '../wire/chat.ts'
import { fromChatBody } from './from-chat-body.ts'

test('function_call and function messages become a tool call and its result', () => {
  const messages: ChatRequest['messages'] = [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
    { role: 'function', name: 'f', content: 'r' },
    { role: 'assistant', refusal: 'no' },
  ]
  const { prompt } = fromChatBody({ model: 'm', messages })
  expect(prompt.kind === 'chat' && prompt.messages.slice(1)).toEqual([
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'f', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    },
    { role: 'tool', content: 'r', tool_call_id: 'f' },
    { role: 'assistant', content: 'no' },
  ])
})

test.each(['reasoning', 'reasoning_content'])('%s of earlier turns is kept', (name) => {
  const messages = [{ role: 'assistant', content: 'a', [name]: 'hm' }] as ChatRequest['messages']
  const { prompt } = fromChatBody({ model: 'm', messages })
  expect(prompt.kind === 'chat' && prompt.messages[0].reasoning_content).toBe('hm')
})
