import fc from 'fast-check'
import { expect, test } from 'vitest'
import { examples } from '../../../test/support/parsers/examples.ts'
import { cut, formatOf, openOutput, streamed, whole } from '../../../test/support/parsers/parse-in-chunks.ts'
import { nearlyValidOutput, randomOutput } from '../../../test/support/parsers/random-outputs.ts'
import { findToolFormat, toolFormats } from './formats/format-table.ts'

const names = toolFormats.map(({ name }) => name)

const places = fc.array(fc.nat(), { maxLength: 12 })

test.each(examples)('$format: $input gives its text and calls', ({ format, input, text, calls, tools }) => {
  expect(whole(format, input, { tools })).toEqual({ text, calls })
})

test.each(examples)('$format, $input split at any place', ({ format, input, text, calls, tools }) => {
  for (let at = 0; at <= input.length; at++) {
    const chunks = [input.slice(0, at), input.slice(at)]
    expect(streamed(format, chunks, { tools })).toEqual({ text, calls, isWhole: true })
  }
})

test.each(examples)(
  '$format, $input by character, at random places, and at once',
  ({ format, input, text, calls, tools }) => {
    const expected = { text, calls, isWhole: true }
    expect(streamed(format, [input], { tools })).toEqual(expected)
    expect(streamed(format, [...input], { tools })).toEqual(expected)
    const withEmpty = [...input].flatMap((char) => ['', char])
    expect(streamed(format, withEmpty, { tools })).toEqual(expected)
    fc.assert(
      fc.property(places, (at) => {
        expect(streamed(format, cut(input, at), { tools })).toEqual(expected)
      }),
      { numRuns: 20 },
    )
  },
)

test.each(examples)('$format, $input byte by byte', ({ format, input, text, calls, tools }) => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const chunks = [...Buffer.from(input)].map((byte) => decoder.decode(Buffer.of(byte), { stream: true }))
  expect(streamed(format, [...chunks, decoder.decode()], { tools })).toEqual({ text, calls, isWhole: true })
})

test('every format has examples', () => {
  const shown = new Set(examples.map(({ format }) => findToolFormat(format)?.name))
  expect(names.filter((name) => !shown.has(name))).toEqual([])
})

/** Arguments that break after their first member: the rest of the text is content. */
const BROKEN_ARGUMENTS = [
  '<|tool_call>call:p{code:007,n:2":{}}]',
  '<|tool_call>call:p{code:007, :1}',
  '<|tool_call>call:p{code:007 x}',
  '[{"name":"p","arguments":{"n":4":{}}]<0}}, {"name":"q","arguments":{}}]',
].map((text): [string, number[], boolean, boolean] => [text, [], false, true])

test.each(names)('the result of %s does not depend on the split of the text', (name) => {
  fc.assert(
    fc.property(
      fc.oneof(nearlyValidOutput, randomOutput),
      places,
      fc.boolean(),
      fc.boolean(),
      (text, at, dropsTrailing, isByChar) => {
        const chunks = isByChar ? text.split('') : cut(text, at)
        const direct = streamed(name, [text], { dropsTrailing })
        expect(streamed(name, chunks, { dropsTrailing })).toEqual(direct)
        const kept = streamed(name, [text], { dropsTrailing, keepsCutCalls: true })
        expect(streamed(name, chunks, { dropsTrailing, keepsCutCalls: true })).toEqual(kept)
        expect(kept.calls).toEqual(direct.calls)
      },
    ),
    { numRuns: 1_000, examples: BROKEN_ARGUMENTS },
  )
})

test.each(names)('%s gives valid JSON arguments for every complete call', (name) => {
  fc.assert(
    fc.property(fc.oneof(nearlyValidOutput, randomOutput), (text) => {
      for (const [, written] of whole(name, text).calls) JSON.parse(written)
    }),
    { numRuns: 1_000 },
  )
})

test.each(names)('%s does not change text without marks', (name) => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '.', '7', '-') })
  const isTrimmed = formatOf(name).text.space === 'trim'
  fc.assert(
    fc.property(letters, places, (text, at) => {
      const expected = isTrimmed ? text.trim() : text
      expect(streamed(name, cut(text, at)).text).toBe(expected)
      expect(whole(name, text).text).toBe(expected)
    }),
    { numRuns: 1_000 },
  )
})

/** The longest prose that may look like the start of a mark. */
const MAX_HELD = 3

test.each(names)('%s does not hold prose back', (name) => {
  const prose = 'so a[0] < b {x} and [1, 2] of {"y": 3}: 1 <2> <| ◁ «c»'
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
  const held = [...prose].map((char, at) => {
    reader.push(char)
    return [prose.slice(0, at + 1), at + 1 - text.length] as const
  })
  expect(held.filter(([, count]) => count > MAX_HELD)).toEqual([])
  expect(text).toBe(prose)
})
