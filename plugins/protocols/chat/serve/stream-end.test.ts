/** The stream completion check of chat streams. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endOfStream } from './stream-end.ts'

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const piece = (content: string, reason: string | null = null) =>
  event({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
const ends = (text: string) => endOfStream(Buffer.from(text))

test('[DONE] and a finish_reason are complete, an error is an error, a text chunk is cut', () => {
  expect(ends(`${piece('a')}data: [DONE]\n\n`)).toBe('complete')
  expect(ends(`${piece('a')}data:[DONE]\r\n\r\n`)).toBe('complete')
  expect(ends(`${piece('a')}${piece('', 'stop')}`)).toBe('complete')
  expect(ends(`${piece('', 'stop')}${event({ choices: [], usage: { total_tokens: 1 } })}`)).toBe('complete')
  expect(ends(`${piece('a')}${event({ error: { message: 'no' } })}`)).toBe('error')
  expect(ends(`${piece('a')}event: error\ndata: no\n\n`)).toBe('error')
  expect(ends(`${piece('a')}${event({ error: { message: 'no' } })}data: [DONE]\n\n`)).toBe('error')
  expect(ends(`${piece('"error"')}data: [DONE]\n\n`)).toBe('complete')
  expect(ends(piece('a'))).toBe('cut')
  // Completions omit finish_reason until the end.
  expect(ends(event({ choices: [{ index: 0, text: 'a' }] }))).toBe('cut')
  expect(ends(`${piece('a')}: comment\n\n`)).toBe('cut')
  // Truncated inside an event.
  expect(ends(piece('a').slice(0, -20))).toBe('cut')
  expect(ends('')).toBe('complete')
  expect(ends('data: something else\n\n')).toBe('complete')
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
      expect(ends(piece(before + trick + after))).toBe('cut')
    }),
  )
})
