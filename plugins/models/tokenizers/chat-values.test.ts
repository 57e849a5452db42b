/** Arguments of tool calls in messages are JSON of limited depth. */
import { expect, test } from 'vitest'
import { toTemplateMessages } from './chat-values.ts'
import { itemOf, memberOf } from './jinja/methods.ts'
import { toJson } from './jinja/to-text.ts'

function argumentsOf(text: string): string {
  const calls = [{ function: { name: 'f', arguments: text } }]
  const form = {
    content: 'string',
    emptyContent: 'null',
    toolArguments: 'value',
    developer: 'system',
  } as const
  const [message] = toTemplateMessages([{ role: 'assistant', tool_calls: calls }], form)
  const called = memberOf(itemOf(message.get('tool_calls') ?? null, 0), 'function')
  return toJson(memberOf(called, 'arguments'), {
    indent: null,
    itemSeparator: ',',
    keySeparator: ':',
    isAscii: false,
    sortsKeys: false,
  })
}

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

test('arguments that are empty or no JSON are an empty object', () => {
  expect(['', '{"a":', '{"a":1}'].map(argumentsOf)).toEqual(['{}', '{}', '{"a":1}'])
})

test('arguments may be nested 128 levels deep', () => {
  expect(argumentsOf(nested(128))).toBe(nested(128))
  expect(() => argumentsOf(nested(129))).toThrow(/more than 128 levels/)
  const text = JSON.stringify({ a: '['.repeat(1_000) })
  expect(argumentsOf(text)).toBe(text)
})

test('unclosed brackets are detected immediately', () => {
  expect(() => argumentsOf('['.repeat(30_000_000))).toThrow(/more than 128 levels/)
})
