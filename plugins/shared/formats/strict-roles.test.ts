/** Templates that accept one system message, in front, and alternating roles accept the result, and no text is lost. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ChatMessage } from '#kernel'
import { withStrictRoles } from './strict-roles.ts'

test('leading system messages are joined, later ones become notes in place', () => {
  expect(
    withStrictRoles([
      { role: 'system', content: 'a' },
      { role: 'developer', content: 'b' },
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'c' },
      { role: 'assistant', content: 'yes' },
      { role: 'system', content: 'd' },
    ]),
  ).toEqual([
    { role: 'system', content: 'a\n\nb' },
    { role: 'user', content: 'hi\n\n<system>\nc\n</system>' },
    { role: 'assistant', content: 'yes' },
    { role: 'user', content: '<system>\nd\n</system>' },
  ])
})

test('neighbouring user messages become one, unless their names differ', () => {
  const image = { type: 'image_url', image_url: { url: 'data:,' } } as const
  expect(
    withStrictRoles([
      { role: 'user', content: 'a' },
      { role: 'user', content: [image] },
      { role: 'user', content: 'b' },
      { role: 'system', content: 'c' },
      { role: 'user', content: 'd', name: 'eve' },
    ]),
  ).toEqual([
    {
      role: 'user',
      content: [{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b\n\n<system>\nc\n</system>' }],
    },
    { role: 'user', content: 'd', name: 'eve' },
  ])
})

test('nothing changes where the only system message is the first', () => {
  const messages: ChatMessage[] = [
    { role: 'system', content: 'a' },
    { role: 'user', content: 'b' },
  ]
  expect(withStrictRoles(messages)).toBe(messages)
})

test('a hundred thousand system messages after a message with parts are joined in one step', () => {
  const run = Array.from({ length: 100_000 }, (): ChatMessage => ({ role: 'system', content: 'x' }))
  const result = withStrictRoles([{ role: 'user', content: [{ type: 'text', text: 'a' }] }, ...run])
  expect(result).toHaveLength(1)
  expect(result[0].content).toHaveLength(2)
})

test('at most the first message is a system message, and all texts stay in order', () => {
  const role = fc.constantFrom('system' as const, 'developer' as const, 'user' as const, 'assistant' as const)
  fc.assert(
    fc.property(fc.array(role, { maxLength: 12 }), (roles) => {
      const messages = roles.map((one, index) => ({ role: one, content: `text-${index}.` }))
      const result = withStrictRoles(messages)
      const later = result.slice(1)
      expect(later.some(({ role: one }) => one === 'system' || one === 'developer')).toBe(false)
      expect(result.some((one, at) => one.role === 'user' && result[at - 1]?.role === 'user')).toBe(false)
      expect(JSON.stringify(result).match(/text-\d+\./g) ?? []).toEqual(
        messages.map(({ content }) => content),
      )
    }),
  )
})
