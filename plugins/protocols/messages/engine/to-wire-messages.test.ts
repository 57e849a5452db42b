/** Conversion of chat messages to Messages turns. */
import { expect, test } from 'vitest'
import type { ChatMessage } from '#kernel'
import { toWireMessages } from './to-wire-messages.ts'

test('adjacent messages of one role are merged into one turn', () => {
  const messages: ChatMessage[] = [
    { role: 'user', content: 'a' },
    { role: 'user', content: '' },
    { role: 'user', content: [{ type: 'text', text: 'b' }] },
    { role: 'assistant', content: 'c' },
    { role: 'tool', tool_call_id: 't', content: 'd' },
    { role: 'user', content: 'e' },
  ]
  expect(toWireMessages(messages, true).messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    { role: 'assistant', content: 'c' },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't', content: 'd' },
        { type: 'text', text: 'e' },
      ],
    },
  ])
})

test('the cost of many adjacent messages is linear', () => {
  const count = 60_000
  const messages = Array.from(
    { length: count },
    (_, i): ChatMessage => ({ role: 'tool', tool_call_id: `t${i}`, content: 'x' }),
  )
  const before = process.cpuUsage()
  const [turn] = toWireMessages(messages, true).messages
  const { user, system } = process.cpuUsage(before)
  // Usually some tens of milliseconds; quadratic work would take half a minute or more.
  expect((user + system) / 1_000).toBeLessThan(10_000)
  expect(turn.content).toHaveLength(count)
}, 300_000)
