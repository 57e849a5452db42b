import fc from 'fast-check'
import { expect, test } from 'vitest'
import { computingMs } from '../../test/support/best-of.ts'
import { skipScalar, skipSpace, skipString, skipValue } from './json-bytes.ts'

const after = (text: string, skip: (body: Buffer, from: number) => number = skipValue) =>
  skip(Buffer.from(text), 0)

test('any JSON value is skipped to its last byte, whatever follows', () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.constantFrom(0, 2),
      fc.constantFrom('', ',', ' ]', '}'),
      (value, space, rest) => {
        const text = JSON.stringify(value, null, space)
        expect(after(text + rest)).toBe(Buffer.byteLength(text))
      },
    ),
  )
})

test('any string ends at its own quote', () => {
  const pieces = fc.array(fc.constantFrom('\\', '"', 'a', 'ü', '\n', 'long enough to leave the loop behind'))
  fc.assert(
    fc.property(pieces, (parts) => {
      const text = JSON.stringify(parts.join(''))
      expect(after(`${text}"x"`, skipString)).toBe(Buffer.byteLength(text))
    }),
  )
})

test('a truncated or invalid value is -1', () => {
  for (const text of [
    '',
    '"',
    '"\\"',
    '{',
    '{"a":"}',
    '[1,[2]',
    'tru',
    '-',
    '1.',
    '01x'.slice(1, 1),
    '1e',
    '+1',
  ])
    expect(after(text), text).toBe(-1)
  expect(after('01', skipScalar)).toBe(1)
})

test('white space is that of JSON', () => {
  expect(after(' \t\r\n1', skipSpace)).toBe(4)
  expect(after('\u00a01', skipSpace)).toBe(0)
})

test.each(['[', '{"a":', '\\', '"', '\\"', '""', '"\\\\"', '1', ' ', '[]', '{},'])(
  '4 MB of %s are stepped over at once',
  (piece) => {
    const body = Buffer.from(piece.repeat(4_194_304 / piece.length))
    const tookMs = computingMs(() => {
      skipValue(body, 0)
      skipString(body, 0)
      skipSpace(body, 0)
    })
    expect(tookMs).toBeLessThan(2_000)
  },
)
