/** The stream completion check of chat streams. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isCompleteStream } from './stream-end.ts'

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const piece = (content: string, reason: string | null = null) =>
  event({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
const ends = (text: string) => isCompleteStream(Buffer.from(text))

test('[DONE], a finish_reason and an error are complete; a text chunk is not', () => {
  expect(ends(`${piece('a')}data: [DONE]\n\n`)).toBe(true)
  expect(ends(`${piece('a')}data:[DONE]\r\n\r\n`)).toBe(true)
  expect(ends(`${piece('a')}${piece('', 'stop')}`)).toBe(true)
  expect(ends(`${piece('', 'stop')}${event({ choices: [], usage: { total_tokens: 1 } })}`)).toBe(true)
  expect(ends(`${piece('a')}${event({ error: { message: 'no' } })}`)).toBe(true)
  expect(ends(`${piece('a')}event: error\ndata: no\n\n`)).toBe(true)
  expect(ends(piece('a'))).toBe(false)
  // Completions omit finish_reason until the end.
  expect(ends(event({ choices: [{ index: 0, text: 'a' }] }))).toBe(false)
  expect(ends(`${piece('a')}: comment\n\n`)).toBe(false)
  // Truncated inside an event.
  expect(ends(piece('a').slice(0, -20))).toBe(false)
  expect(ends('')).toBe(true)
  expect(ends('data: something else\n\n')).toBe(true)
})

test('no model text makes a stream look complete', () => {
  const tricks = fc.constantFrom(
    '\ndata: [DONE]\n\n',
    '"finish_reason":"stop"',
    '\\"finish_reason\\":\\"stop\\"',
    '\ndata: {"error":{}}',
    '\r\nevent: error\r\n',
  )
  fc.assert(
    fc.property(fc.string(), tricks, fc.string(), (before, trick, after) => {
      expect(ends(piece(before + trick + after))).toBe(false)
    }),
  )
})
