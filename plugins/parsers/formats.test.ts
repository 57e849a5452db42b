import fc from 'fast-check'
import { expect, test } from 'vitest'
import { examples } from './fixtures/examples.ts'
import { cut, formatOf, openOutput, streamed, whole } from './fixtures/stream-parts.ts'
import { toolFormats } from './formats/format-table.ts'

const names = toolFormats.map(({ name }) => name)

/** What texts of these formats are made of, so that random ones come close. */
const shards = [
  ...new Set(
    examples.flatMap(({ input }) => input.match(/<[^<>]{1,40}>|[\]<>[{}"':,;|]+|[\w.]+|\s+|[^\s\w]/gu) ?? []),
  ),
  '\\',
  '\\u00',
  '😀',
  '\ud83d',
  '\u0000',
  '﻿',
  ' ',
]
const soup = fc.array(fc.constantFrom(...shards), { maxLength: 40 }).map((parts) => parts.join(''))
const nearly = fc
  .tuple(fc.constantFrom(...examples.map(({ input }) => input)), soup, fc.nat(), fc.nat(3))
  .map(([input, rest, place, kind]) => {
    const at = place % (input.length + 1)
    if (kind === 0) return input.slice(0, at) + rest
    if (kind === 1) return input.slice(0, at) + rest + input.slice(at)
    return kind === 2 ? rest + input : input + rest + input
  })
const places = fc.array(fc.nat(), { maxLength: 12 })

test.each(examples)('$format: $input gives its text and calls', ({ format, input, text, calls, tools }) => {
  expect(whole(format, input, { tools })).toEqual({ text, calls })
})

test.each(examples)(
  'parsers 6.7 #47: $format, $input cut anywhere in two',
  ({ format, input, text, calls, tools }) => {
    for (let at = 0; at <= input.length; at++) {
      const chunks = [input.slice(0, at), input.slice(at)]
      expect(streamed(format, chunks, { tools })).toEqual({ text, calls, isWhole: true })
    }
  },
)

test.each(examples)(
  'parsers 6.7 #48: $format, $input one character at a time',
  ({ format, input, text, calls, tools }) => {
    expect(streamed(format, [...input], { tools })).toEqual({ text, calls, isWhole: true })
    expect(
      streamed(
        format,
        [...input].flatMap((char) => ['', char]),
        { tools },
      ),
    ).toEqual({ text, calls, isWhole: true })
  },
)

test.each(names)('parsers 6.1 I1, I2, I12, 6.7 #106: %s gives the same however the text is cut', (name) => {
  fc.assert(
    fc.property(
      fc.oneof(nearly, soup),
      places,
      fc.boolean(),
      fc.boolean(),
      (text, at, dropsTrailing, isByChar) => {
        const chunks = isByChar ? text.split('') : cut(text, at)
        const direct = streamed(name, [text], { dropsTrailing })
        expect(streamed(name, chunks, { dropsTrailing })).toEqual(direct)
        const held = streamed(name, [text], { dropsTrailing, holdCalls: true })
        expect(streamed(name, chunks, { dropsTrailing, holdCalls: true })).toEqual(held)
        expect(held.isWhole).toBe(true)
      },
    ),
    { numRuns: 1_000 },
  )
})

test.each(names)('parsers 6.1 I3, 6.7 #106: %s gives valid JSON as arguments of every whole call', (name) => {
  fc.assert(
    fc.property(fc.oneof(nearly, soup), (text) => {
      for (const [, written] of whole(name, text).calls) JSON.parse(written)
    }),
    { numRuns: 1_000 },
  )
})

test.each(names)('parsers 6.1 I9: %s leaves text without any mark as it is', (name) => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '.', '7', '-') })
  const isTrimmed = formatOf(name).text.space === 'trim'
  fc.assert(
    fc.property(letters, places, (text, at) => {
      expect(streamed(name, cut(text, at)).text).toBe(isTrimmed ? text.trim() : text)
    }),
  )
})

test.each(names)('parsers 6.1 I6, 6.7 #59: %s holds no prose back', (name) => {
  const prose = 'so a[0] < b {x} and c'
  const format = formatOf(name)
  let text = ''
  const sink = {
    text(delta: string) {
      text += delta
    },
    callStarted() {},
    callArguments() {},
    callDone() {},
  }
  const reader = format.open(openOutput(format, sink))
  for (const char of prose) reader.push(char)
  expect(text).toBe(prose)
})
