/** What counts as the end of a chat's stream. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isCompleteStream } from './stream-end.ts'

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const piece = (content: string, reason: string | null = null) =>
  event({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
const ends = (text: string) => isCompleteStream(Buffer.from(text))

test('an end is [DONE], a reason or an error; a piece of an answer is none', () => {
  expect(ends(`${piece('a')}data: [DONE]\n\n`)).toBe(true)
  expect(ends(`${piece('a')}data:[DONE]\r\n\r\n`)).toBe(true)
  expect(ends(`${piece('a')}${piece('', 'stop')}`)).toBe(true)
  expect(ends(`${piece('', 'stop')}${event({ choices: [], usage: { total_tokens: 1 } })}`)).toBe(true)
  expect(ends(`${piece('a')}${event({ error: { message: 'no' } })}`)).toBe(true)
  expect(ends(`${piece('a')}event: error\ndata: no\n\n`)).toBe(true)
  expect(ends(piece('a'))).toBe(false)
  // Completions leave the reason out until there is one.
  expect(ends(event({ choices: [{ index: 0, text: 'a' }] }))).toBe(false)
  expect(ends(`${piece('a')}: comment\n\n`)).toBe(false)
  // A cut inside of an event.
  expect(ends(piece('a').slice(0, -20))).toBe(false)
  expect(ends('')).toBe(true)
  expect(ends('data: something else\n\n')).toBe(true)
})

test('no text of a model looks like an end', () => {
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
