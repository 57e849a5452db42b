import { expect, test } from 'vitest'
import { StreamedText } from './unreported-usage.ts'

test('of a longer stream, the beginning is kept', () => {
  const text = new StreamedText(String)
  const event = Buffer.alloc(1_000, 'x')
  for (let count = 0; count < 1_000; count++) text.push(event)
  expect(text.text()).toBe('x'.repeat(262_144))
  expect(text.scale).toBeCloseTo((1_000 * event.length) / 262_144)
})

test('all streams of a thread together keep a bounded number of bytes, each at least its beginning', () => {
  const chunk = Buffer.alloc(262_144, 'a')
  const streams = Array.from({ length: 300 }, () => new StreamedText(String))
  for (const stream of streams) stream.push(chunk)
  expect(streams[0].scale).toBe(1)
  expect(streams[299].scale).toBe(64)
  for (const stream of streams) stream.release()
  const next = new StreamedText(String)
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
