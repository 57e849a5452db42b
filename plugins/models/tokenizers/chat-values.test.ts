/** Arguments of tool calls in messages are JSON of limited depth. */
import { expect, test } from 'vitest'
import { toTemplateMessages } from './chat-values.ts'

function argumentsOf(text: string): unknown {
  const calls = [{ function: { name: 'f', arguments: text } }]
  const form = { content: 'string', toolArguments: 'value' } as const
  const [{ tool_calls: read }] = toTemplateMessages([{ role: 'assistant', tool_calls: calls }], form)
  return (read as { function: { arguments: unknown } }[])[0].function.arguments
}

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

test('arguments that are empty or no JSON are an empty object', () => {
  expect([argumentsOf(''), argumentsOf('{"a":'), argumentsOf('{"a":1}')]).toEqual([{}, {}, { a: 1 }])
})

test('arguments may be nested 128 levels deep', () => {
  expect(JSON.stringify(argumentsOf(nested(128)))).toBe(nested(128))
  expect(() => argumentsOf(nested(129))).toThrow(/more than 128 levels/)
  expect(argumentsOf(JSON.stringify({ a: '['.repeat(1_000) }))).toEqual({ a: '['.repeat(1_000) })
})

test('unclosed brackets are detected immediately', () => {
  expect(() => argumentsOf('['.repeat(30_000_000))).toThrow(/more than 128 levels/)
})
