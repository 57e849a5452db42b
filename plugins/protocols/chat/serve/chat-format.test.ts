import fc from 'fast-check'
import { expect, test } from 'vitest'
import { peekRouting } from '../../../../kernel/http/json-body.ts'
import { editedBody } from '../../../../kernel/upstream/worker-request.ts'
import { chatFormat } from './chat-format.ts'

function ask(text: string): string {
  const body = Buffer.from(text)
  const edit = chatFormat.askForUsage?.(body, peekRouting(body, 64)) ?? null
  return edit === null ? text : editedBody(body, [edit]).toString()
}

test('any body: usage is requested, and nothing else changes', () => {
  const options = fc.option(
    fc.record({ include_usage: fc.boolean(), other: fc.jsonValue() }, { requiredKeys: [] }),
  )
  const body = fc.record(
    { stream: fc.constant(true), x: fc.jsonValue(), stream_options: options },
    { requiredKeys: ['stream'] },
  )
  fc.assert(
    fc.property(body, fc.constantFrom(0, 1), (value, indent) => {
      const text = ` ${JSON.stringify(value, null, indent)}`
      const asked = JSON.parse(ask(text))
      const before = JSON.parse(text)
      expect(asked).toEqual({ ...before, stream_options: { ...before.stream_options, include_usage: true } })
    }),
  )
})

test('a body that requests usage, or has invalid options, stays as it is', () => {
  for (const text of [
    '{"stream_options":{"include_usage":true}}',
    '{"stream_options":"x"}',
    '{"stream_options":[1]}',
    String.raw`{"stream_options":{"a":"\x"}}`,
  ])
    expect(ask(text)).toBe(text)
})
