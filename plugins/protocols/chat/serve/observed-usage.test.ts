import fc from 'fast-check'
import { expect, test } from 'vitest'
import { observe } from '../../../../test/support/observe.ts'
import { chatFormat } from './chat-format.ts'
import { generateFormat } from './generate-format.ts'

const PIECE = 'data: {"choices":[{"delta":{"content":"a \\"usage\\": {} \\n"}}],"usage":null}\n\n'
const USAGE =
  'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}}\n\n'
const FINAL =
  'data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}\r\n\r\n'
const DONE = 'data: [DONE]\n\n'
const COUNTED = { input: 7, output: 3, cached: 2, reasoning: 0 }

/** Other forms of output: white space, the null between other members, the role of a first event, none. */
const SPACED =
  'data: {"model": "m", "choices": [{"index": 0, "text": "b]}"}], "usage" : null, "x": {"usage":null}}\n\n'
const ROLE = 'data: {"choices":[{"delta":{"role":"assistant"}}],"usage":null}\n\n'
const BARE = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
const LONG = BARE.replace('"a"', `"${'long '.repeat(99)}"`)
const CRLF = PIECE.replaceAll('\n\n', '\r\n\r\n')
const withoutNull = (stream: string) =>
  stream.replaceAll('}}],"usage":null}', '}}]}').replaceAll('}], "usage" : null,', '}],')

const cutsOf = fc.array(fc.nat(), { maxLength: 12 })
const events = fc.array(fc.constantFrom(PIECE, PIECE, ': ping\n\n', CRLF, FINAL, SPACED, ROLE, BARE, LONG), {
  maxLength: 8,
})

test('any split: the event of usage alone and null usage are removed, other bytes pass, and the usage is read', () => {
  fc.assert(
    fc.property(events, events, cutsOf, fc.boolean(), (before, after, cuts, hasEnd) => {
      const [start, end] = [before.join(''), after.join('') + (hasEnd ? DONE : 'data: {"incompl')]
      const { text, usage } = observe(chatFormat, start + USAGE + end, { cuts, removesUsage: true })
      const expected = withoutNull(start + end)
      // The end mark that a finished stream lacks.
      expect([expected, expected + DONE]).toContain(text)
      expect(usage).toEqual(COUNTED)
    }),
    { numRuns: 2_000 },
  )
})

test('any split: a stream whose client asked for usage passes unchanged, and the last usage is read', () => {
  fc.assert(
    fc.property(events, cutsOf, (before, cuts) => {
      const stream = before.join('') + USAGE + DONE
      expect(observe(chatFormat, stream, { cuts })).toMatchObject({ text: stream, usage: COUNTED })
    }),
    { numRuns: 1_000 },
  )
})

test('a usage event without an empty line at the end of the stream is read and removed', () => {
  const { text, usage } = observe(chatFormat, PIECE + USAGE.trimEnd(), { removesUsage: true })
  expect([text, usage]).toEqual([withoutNull(PIECE), COUNTED])
})

test('/generate: the counts of each answer replace the earlier ones; the answers add up', () => {
  const event = (index: number, output: number) =>
    `data: {"text":"…","index":${index},"meta_info":{"prompt_tokens":4,"completion_tokens":${output},"cached_tokens":1}}\n\n`
  const stream = event(0, 1) + event(1, 1) + event(0, 6) + event(1, 2) + DONE
  const { usage } = observe(generateFormat, stream, { cuts: [30, 90] })
  expect(usage).toEqual({ input: 8, output: 8, cached: 2, reasoning: 0 })
})

test('any split: events with output are counted, without a role before the first', () => {
  const outputs = fc.array(fc.constantFrom(PIECE, BARE, LONG, CRLF, SPACED, ': ping\n\n'), { maxLength: 20 })
  fc.assert(
    fc.property(outputs, cutsOf, fc.boolean(), (sent, cuts, hasRole) => {
      const stream = (hasRole ? ROLE : '') + sent.join('') + DONE
      expect(observe(chatFormat, stream, { cuts, removesUsage: true })).toMatchObject({
        outputEvents: sent.filter((event) => event !== ': ping\n\n').length,
        hasOutputUsage: false,
      })
    }),
    { numRuns: 1_000 },
  )
})

test('a stream of one endless event is passed on', () => {
  const stream = 'a'.repeat(3_000_000)
  const cuts = Array.from({ length: 29 }, (_, part) => (part + 1) * 100_000)
  const { text, usage, unreadBytes } = observe(chatFormat, stream, { cuts, removesUsage: true })
  expect([text === stream, usage]).toEqual([true, null])
  expect(unreadBytes).toBe(3_000_000)
})

test('the counts of all answers of /generate are added up', () => {
  const answers = Array.from({ length: 20 }, () => ({
    text: '"completion_tokens": 9',
    meta_info: { prompt_tokens: 1_000, completion_tokens: 1_000, cached_tokens: 3 },
  }))
  expect(generateFormat.usageOf(Buffer.from(JSON.stringify(answers)))).toEqual({
    input: 20_000,
    output: 20_000,
    cached: 60,
    reasoning: 0,
  })
})

test('splits of a body of /generate make no difference', () => {
  const info = fc.record({ prompt_tokens: fc.nat(), completion_tokens: fc.nat() })
  fc.assert(
    fc.property(
      fc.array(fc.record({ text: fc.string(), meta_info: info })),
      fc.array(fc.nat()),
      (answers, cuts) => {
        const text = JSON.stringify(answers, null, cuts.length % 3)
        const { usage } = observe(generateFormat, text, { cuts, isEventStream: false })
        expect(usage).toEqual(generateFormat.usageOf(Buffer.from(text)))
      },
    ),
  )
})

const data = (json: object) => `data: ${JSON.stringify(json)}\n\n`
const chat = (delta: object) => data({ id: 'c', choices: [{ index: 0, delta }] })

test('any text in any chunks: one output event per delta, and the same text', () => {
  const words = fc.array(fc.string({ minLength: 1, unit: 'grapheme' }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 500 }), (deltas, chunkBytes) => {
      const events = [{ role: 'assistant', content: '' }, ...deltas.map((content) => ({ content }))]
      const stream = events.map(chat).join('')
      const cuts = Array.from({ length: Math.floor(stream.length / chunkBytes) }, (_, at) => at * chunkBytes)
      expect(chatFormat.textOf?.(Buffer.from(stream))).toBe(deltas.join(''))
      expect(observe(chatFormat, stream, { cuts }).outputEvents).toBe(deltas.length)
    }),
  )
})

test('reasoning, answers, calls and choices are joined separately', () => {
  const call = (index: number, function_: object) => ({ tool_calls: [{ index, function: function_ }] })
  const stream =
    chat({ reasoning_content: 'a' }) +
    chat({ content: 'b' }) +
    chat(call(0, { name: 'f', arguments: '{' })) +
    chat(call(1, { name: 'g', arguments: '[' })) +
    chat(call(0, { arguments: '}' })) +
    data({ choices: [{ index: 1, delta: { content: 'c' } }] }) +
    chat({ content: 'd' }) +
    'data: [DONE]\n\ndata: {broken\n\n'
  expect(chatFormat.textOf?.(Buffer.from(stream))).toBe('a\nbd\nf{}\ng[\nc')
})
