import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamUsage } from './stream-usage.ts'

const PIECE = 'data: {"choices":[{"delta":{"content":"a \\"usage\\": {} \\n"}}],"usage":null}\n\n'
const USAGE =
  'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}}\n\n'
const FINAL =
  'data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}\r\n\r\n'
const DONE = 'data: [DONE]\n\n'
const COUNTED = { input: 7, output: 3, cached: 2, reasoning: 0 }

function pass(stream: string, cuts: readonly number[], usage: StreamUsage): string {
  const bytes = Buffer.from(stream)
  const passed: Buffer[] = []
  let at = 0
  for (const cut of [...cuts.map((part) => part % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    // The memory of a chunk is reused after the call.
    const chunk = Buffer.from(bytes.subarray(at, cut))
    passed.push(Buffer.from(usage.pass(chunk)))
    chunk.fill(0)
    at = cut
  }
  passed.push(usage.rest())
  return Buffer.concat(passed).toString()
}

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
      const usage = new StreamUsage('on_request', true)
      expect(pass(start + USAGE + end, cuts, usage)).toBe(withoutNull(start + end))
      expect(usage.usage()).toEqual(COUNTED)
    }),
    { numRuns: 2_000 },
  )
})

test('any split: a stream whose client asked for usage passes unchanged, and the last usage is read', () => {
  fc.assert(
    fc.property(events, cutsOf, (before, cuts) => {
      const usage = new StreamUsage('on_request', false)
      const stream = before.join('') + USAGE + DONE
      expect(pass(stream, cuts, usage)).toBe(stream)
      expect(usage.usage()).toEqual(COUNTED)
    }),
    { numRuns: 1_000 },
  )
})

test('a usage event without an empty line at the end of the stream is read and removed', () => {
  const usage = new StreamUsage('on_request', true)
  expect(pass(PIECE + USAGE.trimEnd(), [], usage)).toBe(withoutNull(PIECE))
  expect(usage.usage()).toEqual(COUNTED)
})

test('Messages: the start counts the input with its cached parts, later events the output', () => {
  const stream =
    'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":10,"cache_creation_input_tokens":1,"output_tokens":1}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"type":"tool_use","input":{"usage":{"output_tokens":999}}}}\n\n' +
    'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":20,"output_tokens_details":{"thinking_tokens":4}}}\n\n'
  for (let cut = 0; cut < stream.length; cut++) {
    const usage = new StreamUsage('always', false)
    expect(pass(stream, [cut], usage)).toBe(stream)
    expect(usage.usage()).toMatchObject({ input: 16, output: 20, cached: 10, reasoning: 4 })
  }
})

test('/generate: the counts of each answer replace the earlier ones; the answers add up', () => {
  const event = (index: number, output: number) =>
    `data: {"text":"…","index":${index},"meta_info":{"prompt_tokens":4,"completion_tokens":${output},"cached_tokens":1}}\n\n`
  const usage = new StreamUsage('meta_info', false)
  pass(event(0, 1) + event(1, 1) + event(0, 6) + event(1, 2) + DONE, [30, 90], usage)
  expect(usage.usage()).toEqual({ input: 8, output: 8, cached: 2, reasoning: 0 })
})

test('any split: events with output are counted, without a role before the first', () => {
  const outputs = fc.array(fc.constantFrom(PIECE, BARE, LONG, CRLF, SPACED, ': ping\n\n'), { maxLength: 20 })
  fc.assert(
    fc.property(outputs, cutsOf, fc.boolean(), (sent, cuts, hasRole) => {
      const usage = new StreamUsage('on_request', true)
      pass((hasRole ? ROLE : '') + sent.join('') + DONE, cuts, usage)
      expect(usage.outputEvents).toBe(sent.filter((event) => event !== ': ping\n\n').length)
      expect(usage.isReported).toBe(false)
    }),
    { numRuns: 1_000 },
  )
})

test('a stream of one endless event is passed on', () => {
  const usage = new StreamUsage('on_request', true)
  const block = Buffer.alloc(100_000, 'a')
  let bytes = 0
  for (let i = 0; i < 30; i++) bytes += usage.pass(block).length
  expect(bytes + usage.rest().length).toBe(3_000_000)
  expect(usage.usage()).toBeNull()
})
