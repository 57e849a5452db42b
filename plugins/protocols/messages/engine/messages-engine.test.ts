/** Events of Messages workers as generation events: every kind of block, any split of the bytes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EngineAttempt, GatewayError, GenerationEvent } from '#kernel'
import { jsonAnswerReader } from '#shared'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { MessageJson } from './messages-engine.ts'

const ctx: unknown = { warn() {} }
const attempt = { model: 'm', worker: workerEntry({ slot: 0 }), request: {}, ctx } as EngineAttempt
/** An attempt for a request in the Messages format. */
const nativeAttempt = { ...attempt, request: { native: { engine: 'messages' } } } as EngineAttempt

function sink() {
  const events: GenerationEvent[] = []
  const failures: GatewayError[] = []
  return {
    events,
    failures,
    emit: (event: GenerationEvent) => void events.push(event),
    fail: (error: GatewayError) => void failures.push(error),
    stop() {},
    defer: (next: () => void) => next(),
  }
}

const sse = (events: readonly { type: string }[]) =>
  Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

function readStream(bytes: Buffer, cuts: readonly number[] = [], of = attempt) {
  const out = sink()
  const reader = jsonAnswerReader(new MessageJson(of, out), out, 1 << 20)
  reader.onStart(['content-type', 'text/event-stream'])
  let from = 0
  for (const cut of [...new Set(cuts)].sort((a, b) => a - b).concat(bytes.length)) {
    if (cut > from) reader.onData(Buffer.from(bytes.subarray(from, cut)))
    from = Math.max(from, cut)
  }
  reader.onEnd()
  return out
}

const usage = {
  input_tokens: 5,
  cache_read_input_tokens: 3,
  cache_creation_input_tokens: 2,
  output_tokens: 1,
}
const start = { type: 'message_start', message: { id: 'msg_1', model: 'real', usage } }
const block = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, one: object) => ({ type: 'content_block_delta', index, delta: one })
const stop = (index: number) => ({ type: 'content_block_stop', index })
const end = (reason: string, sequence: string | null = null) => [
  {
    type: 'message_delta',
    delta: { stop_reason: reason, stop_sequence: sequence },
    usage: { output_tokens: 9 },
  },
  { type: 'message_stop' },
]
const STREAM = sse([
  start,
  { type: 'ping' },
  block(0, { type: 'thinking', thinking: '', signature: '' }),
  delta(0, { type: 'thinking_delta', thinking: 'hm é' }),
  delta(0, { type: 'signature_delta', signature: 'sig' }),
  stop(0),
  block(1, { type: 'text', text: '' }),
  delta(1, { type: 'text_delta', text: 'Hél' }),
  delta(1, { type: 'text_delta', text: 'lo 🙂' }),
  stop(1),
  block(2, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
  delta(2, { type: 'input_json_delta', partial_json: '{"q":1}' }),
  stop(2),
  block(3, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
  delta(3, { type: 'input_json_delta', partial_json: '' }),
  delta(3, { type: 'input_json_delta', partial_json: '{"x"' }),
  delta(3, { type: 'input_json_delta', partial_json: ':1}' }),
  stop(3),
  block(4, { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} }),
  stop(4),
  ...end('tool_use'),
])

test('thinking, signature, text, calls and usage become events in order', () => {
  const { events, failures } = readStream(STREAM)
  expect(failures).toEqual([])
  expect(events[0]).toMatchObject({ type: 'started', id: 'msg_1', model: 'real', inputTokens: 10 })
  expect(events.slice(1)).toEqual([
    { type: 'reasoning', choice: 0, delta: 'hm é' },
    { type: 'reasoning_signature', choice: 0, signature: 'sig' },
    { type: 'text', choice: 0, delta: 'Hél' },
    { type: 'text', choice: 0, delta: 'lo 🙂' },
    { type: 'tool_call', choice: 0, index: 0, id: 'toolu_1', name: 'f' },
    { type: 'tool_arguments', choice: 0, index: 0, delta: '{"x"' },
    { type: 'tool_arguments', choice: 0, index: 0, delta: ':1}' },
    { type: 'tool_call_done', choice: 0, index: 0 },
    { type: 'tool_call', choice: 0, index: 1, id: 'toolu_2', name: 'g' },
    { type: 'tool_arguments', choice: 0, index: 1, delta: '{}' },
    { type: 'tool_call_done', choice: 0, index: 1 },
    { type: 'choice_done', choice: 0, reason: 'tool_calls', matchedStop: null },
    {
      type: 'finished',
      usage: {
        inputTokens: 10,
        cachedTokens: 3,
        cacheWriteTokens: 2,
        outputTokens: 9,
        reasoningTokens: 0,
        breakdown: { kinds: { cache_write: 2 }, tier: null },
      },
    },
  ])
})

test('events do not depend on the split of the bytes', () => {
  const { events } = readStream(STREAM)
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 12 }), (cuts) => {
      const plain = (list: readonly GenerationEvent[]) =>
        list.map((event) => (event.type === 'started' ? { ...event, createdAtSec: 0 } : event))
      expect(plain(readStream(STREAM, cuts).events)).toEqual(plain(events))
    }),
  )
})

const BLOCKS = [
  { type: 'thinking', thinking: 'one é', signature: 'sig-1' },
  { type: 'thinking', thinking: '', signature: 'sig-2' },
  { type: 'redacted_thinking', data: 'sealed' },
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { q: 'x' } },
  { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result' }] },
  { type: 'text', text: 'Héllo 🙂', citations: [{ type: 'web', n: 1 }, { n: 2 }] },
  { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 }, caller: { type: 'direct' } },
]
const PIECES = sse([
  start,
  block(0, { type: 'thinking', thinking: '', signature: '' }),
  delta(0, { type: 'thinking_delta', thinking: 'one ' }),
  delta(0, { type: 'thinking_delta', thinking: 'é' }),
  delta(0, { type: 'signature_delta', signature: 'sig' }),
  delta(0, { type: 'signature_delta', signature: '-1' }),
  stop(0),
  block(1, { type: 'thinking', thinking: '', signature: '' }),
  delta(1, { type: 'signature_delta', signature: 'sig-2' }),
  stop(1),
  block(2, BLOCKS[2]),
  stop(2),
  block(3, { ...BLOCKS[3], input: {} }),
  delta(3, { type: 'input_json_delta', partial_json: '{"q":' }),
  delta(3, { type: 'input_json_delta', partial_json: '"x"}' }),
  stop(3),
  block(4, BLOCKS[4]),
  stop(4),
  block(5, { type: 'text', text: '', citations: [] }),
  delta(5, { type: 'text_delta', text: 'Héllo' }),
  delta(5, { type: 'citations_delta', citation: { type: 'web', n: 1 } }),
  delta(5, { type: 'text_delta', text: ' 🙂' }),
  delta(5, { type: 'citations_delta', citation: { n: 2 } }),
  stop(5),
  block(6, { ...BLOCKS[6], input: {} }),
  delta(6, { type: 'input_json_delta', partial_json: '{"x":1}' }),
  stop(6),
  block(7, { type: 'text', text: '' }),
  stop(7),
  ...end('tool_use'),
])

test('a native request also gets blocks in the Messages format, for any split of the bytes', () => {
  const whole = sink()
  new MessageJson(nativeAttempt, whole).addWhole(
    JSON.stringify({ content: [...BLOCKS, { type: 'text', text: '' }], stop_reason: 'tool_use' }),
  )
  const endOf = (events: readonly GenerationEvent[]) => events.find(({ type }) => type === 'choice_done')
  expect(endOf(whole.events)).toMatchObject({ native: { engine: 'messages', content: BLOCKS } })
  expect(endOf(readStream(PIECES).events)).not.toHaveProperty('native')
  fc.assert(
    fc.property(fc.array(fc.nat(PIECES.length), { maxLength: 12 }), (cuts) => {
      const { events } = readStream(PIECES, cuts, nativeAttempt)
      expect(endOf(events)).toEqual(endOf(whole.events))
      const told = (type: string) => events.filter((event) => event.type === type)
      expect(told('native_item')).toEqual(
        BLOCKS.slice(2, 5).map((item, number) => ({
          type: 'native_item',
          choice: 0,
          number,
          engine: 'messages',
          item,
        })),
      )
      expect(told('reasoning_signature')).toMatchObject([{ signature: 'sig-1' }, { signature: 'sig-2' }])
      expect(told('annotation').length).toBe(2)
    }),
  )
})

test('stop reasons are mapped', () => {
  const endOf = (reason: string, sequence: string | null = null) =>
    readStream(sse([start, ...end(reason, sequence)])).events.find(({ type }) => type === 'choice_done')
  expect(endOf('end_turn')).toMatchObject({ reason: 'stop', matchedStop: null })
  expect(endOf('stop_sequence', 'END')).toMatchObject({ reason: 'stop', matchedStop: 'END' })
  expect(endOf('max_tokens')).toMatchObject({ reason: 'length' })
  expect(endOf('refusal')).toMatchObject({ reason: 'content_filter' })
})

test('an error event fails with its HTTP status; a truncated stream does not finish', () => {
  const failed = (type: string) =>
    readStream(sse([start, { type: 'error', error: { type, message: 'm' } } as never])).failures[0]
  expect([failed('overloaded_error').status, failed('overloaded_error').isRetryable]).toEqual([529, true])
  expect([failed('invalid_request_error').status, failed('invalid_request_error').isRetryable]).toEqual([
    400,
    false,
  ])
  expect(failed('brand_new').status).toBe(502)
  const cut = readStream(sse([start]))
  expect(cut.events.map(({ type }) => type)).toEqual(['started'])
  expect(() => readStream(Buffer.from('data: {"type":\n\n'))).toThrow(SyntaxError)
})

test('an endless event fails at the size limit', () => {
  const out = sink()
  const reader = jsonAnswerReader(new MessageJson(attempt, out), out, 1024)
  reader.onStart(['content-type', 'text/event-stream'])
  reader.onData(Buffer.from(`data: {"x":"${'y'.repeat(2_000)}`))
  expect(out.failures.map(({ code }) => code)).toEqual(['worker_answer_too_long'])
})

test('a non-streamed message gives the events of a short stream', () => {
  const out = sink()
  const reader = jsonAnswerReader(new MessageJson(attempt, out), out, 1 << 20)
  reader.onStart([])
  const content = [
    { type: 'thinking', thinking: 'hm', signature: 's' },
    { type: 'text', text: 'a' },
    { type: 'tool_use', id: 't', name: 'f', input: { x: 1 } },
  ]
  reader.onData(
    Buffer.from(
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        model: 'real',
        content,
        stop_reason: 'tool_use',
        usage,
      }),
    ),
  )
  reader.onEnd()
  expect(out.events.map(({ type }) => type)).toEqual([
    'started',
    'reasoning',
    'reasoning_signature',
    'text',
    'tool_call',
    'tool_arguments',
    'tool_call_done',
    'choice_done',
    'finished',
  ])
})

test('a missing message_start is added, and started is emitted once', () => {
  const text = [block(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text: 'a' }), stop(0)]
  const typesOf = (events: readonly { type: string }[]) =>
    readStream(sse(events)).events.map(({ type }) => type)
  const told = ['started', 'text', 'choice_done', 'finished']
  expect(typesOf([...text, ...end('end_turn')])).toEqual(told)
  expect(typesOf([...text.slice(1), ...end('end_turn')])).toEqual(told)
  expect(typesOf([start, start, ...text, ...end('end_turn')])).toEqual(told)
  expect(typesOf(end('end_turn'))).toEqual(['started', 'choice_done', 'finished'])
  expect(readStream(sse(end('end_turn'))).events[0]).toMatchObject({
    id: null,
    model: 'm',
  })
})
