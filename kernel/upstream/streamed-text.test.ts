/** Text and output events of streams, independent of how the bytes are split. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { UsageReport } from '../contracts/relay-options.ts'
import { StreamUsage } from './stream-usage.ts'
import { StreamedText } from './streamed-text.ts'

const data = (json: object) => `data: ${JSON.stringify(json)}\n\n`
const chat = (delta: object) => data({ id: 'c', choices: [{ index: 0, delta }] })
const estimator = { covers: () => true, count: () => Promise.resolve(null) }

/** Passes the stream in chunks. */
function streamed(text: string, chunkBytes: number, report: UsageReport = 'on_request'): StreamUsage {
  const usage = new StreamUsage(report, false, 0, estimator)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += chunkBytes) usage.pass(bytes.subarray(at, at + chunkBytes))
  return usage
}

test('any text in any chunks: one output event per delta, and the same text', () => {
  const words = fc.array(fc.string({ minLength: 1, unit: 'grapheme' }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 500 }), (deltas, chunkBytes) => {
      const events = [{ role: 'assistant', content: '' }, ...deltas.map((content) => ({ content }))]
      const usage = streamed(events.map(chat).join(''), chunkBytes)
      expect(usage.text?.text()).toBe(deltas.join(''))
      expect(usage.text?.scale).toBe(1)
      expect(usage.outputEvents).toBe(deltas.length)
    }),
  )
})

test('Messages: events before the output, however they are joined, change nothing', () => {
  const start = { type: 'message_start', message: { role: 'assistant', usage: { input_tokens: 1 } } }
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ab' } }
  const stream = `event: message_start\n${data(start)}${`event: content_block_delta\n${data(delta)}`.repeat(9)}`
  for (let chunkBytes = 1; chunkBytes <= stream.length; chunkBytes++) {
    const usage = streamed(stream, chunkBytes, 'always')
    expect([usage.outputEvents, usage.text?.text()]).toEqual([9, 'ab'.repeat(9)])
  }
})

test('reasoning, answers, calls and choices are joined separately', () => {
  const call = (index: number, function_: object) => ({ tool_calls: [{ index, function: function_ }] })
  const usage = streamed(
    chat({ reasoning_content: 'a' }) +
      chat({ content: 'b' }) +
      chat(call(0, { name: 'f', arguments: '{' })) +
      chat(call(1, { name: 'g', arguments: '[' })) +
      chat(call(0, { arguments: '}' })) +
      data({ choices: [{ index: 1, delta: { content: 'c' } }] }) +
      chat({ content: 'd' }) +
      'data: [DONE]\n\ndata: {broken\n\n',
    1_000,
  )
  expect(usage.text?.text()).toBe('a\nbd\nf{}\ng[\nc')
})

test('of a longer stream, the beginning is kept', () => {
  const text = new StreamedText()
  const event = Buffer.from(chat({ content: 'x'.repeat(1_000) }))
  for (let count = 0; count < 1_000; count++) text.push(event)
  const kept = Math.floor(262_144 / event.length)
  expect(text.text()).toBe('x'.repeat(kept * 1_000))
  expect(text.scale).toBeCloseTo((1_000 * event.length) / 262_144)
})

test('all streams of a thread together keep a bounded number of bytes, each at least its beginning', () => {
  const chunk = Buffer.alloc(262_144, 'a')
  const streams = Array.from({ length: 300 }, () => new StreamedText())
  for (const stream of streams) stream.push(chunk)
  expect(streams[0].scale).toBe(1)
  expect(streams[299].scale).toBe(64)
  for (const stream of streams) stream.release()
  const next = new StreamedText()
  next.push(chunk)
  expect(next.scale).toBe(1)
  next.release()
})

test('written texts are kept up to the limit, and their bytes are counted', () => {
  const text = new StreamedText((kept) => kept.toString('utf8'))
  text.write('a€')
  text.write('b')
  expect([text.text(), text.scale]).toEqual(['a€b', 1])
  // No part of a character is kept.
  text.write('€'.repeat(100_000))
  text.write('c')
  expect(text.text()).toBe(`a€b${'€'.repeat(Math.floor((262_144 - 5) / 3))}`)
  expect(text.scale).toBeCloseTo(300_006 / 262_144, 4)
  text.release()
})
