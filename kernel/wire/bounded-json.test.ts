import { expect, test } from 'vitest'
import { parseBoundedJson, parseBoundedText } from './bounded-json.ts'

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

test('deeply nested JSON is rejected before parsing, at any length', () => {
  for (const levels of [129, 100_000, 4_000_000]) {
    expect(() => parseBoundedJson(Buffer.from(nested(levels)))).toThrow(/more than 128 levels/)
    if (levels > 2_048) expect(() => parseBoundedText(nested(levels))).toThrow(/more than 128 levels/)
  }
  expect(() => parseBoundedText('['.repeat(30_000_000))).toThrow(/more than 128 levels/)
  expect(parseBoundedJson(Buffer.from(nested(128)))).toHaveLength(1)
  expect(parseBoundedText(`{"a":${nested(127)}${' '.repeat(5_000)}}`)).toHaveProperty('a')
})

test('so is JSON with too many objects; a response may have more of them than a report', () => {
  const objects = (count: number) => `[${'{},'.repeat(count - 2)}{}]`
  expect(() => parseBoundedJson(Buffer.from(objects(131_073)))).toThrow(/131072/)
  expect(parseBoundedText(objects(131_073))).toHaveLength(131_072)
  expect(() => parseBoundedText(objects(1_048_577))).toThrow(/1048576/)
})

test.each(['', '{', '{"a":}', 'x', `{"a":"${'x'.repeat(5_000)}`])('%j is no JSON', (text) => {
  expect(() => parseBoundedText(text)).toThrow(SyntaxError)
})
