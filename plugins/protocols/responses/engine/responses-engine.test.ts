/** Events of Responses workers as generation events: every kind of item, any split of the bytes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EngineAttempt, GatewayError, GenerationEvent } from '#kernel'
import { jsonAnswerReader } from '#shared'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { ResponseJson } from './responses-engine.ts'

const ctx: unknown = { warn() {} }
const attempt = {
  model: 'm',
  worker: workerEntry({ slot: 0 }),
  request: { sampling: {} },
  ctx,
} as EngineAttempt

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
  Buffer.from(
    `${events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`,
  )

function readStream(bytes: Buffer, cuts: readonly number[] = []) {
  const out = sink()
  const reader = jsonAnswerReader(new ResponseJson(attempt, out), out, 1 << 20)
  reader.onStart(['content-type', 'text/event-stream'])
  let from = 0
  for (const cut of [...new Set(cuts)].sort((a, b) => a - b).concat(bytes.length)) {
    if (cut > from) reader.onData(Buffer.from(bytes.subarray(from, cut)))
    from = Math.max(from, cut)
  }
  reader.onEnd()
  return out
}

const items = [
  {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'short' }],
    content: [{ type: 'reasoning_text', text: 'hm é' }],
    encrypted_content: 'sealed',
  },
  { id: 'msg_1', type: 'message', content: [{ type: 'output_text', text: 'Héllo 🙂', annotations: [] }] },
  { id: 'ws_1', type: 'web_search_call', action: { type: 'search', query: 'q' } },
  { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"x":1}' },
  { id: 'x_1', type: '_hidden_call' },
]
const usage = { input_tokens: 9, input_tokens_details: { cached_tokens: 3 }, output_tokens: 4 }
const begun = { id: 'resp_1', model: 'real', created_at: 5, output: [] }
const ended = { ...begun, status: 'completed', output: items, usage }
const on = (output_index: number, type: string, more: object) => ({
  type: `response.${type}`,
  output_index,
  ...more,
})
const added = (index: number) => on(index, 'output_item.added', { item: items[index] })
const done = (index: number) => on(index, 'output_item.done', { item: items[index] })
const STREAM = sse([
  { type: 'response.created', response: begun } as never,
  { type: 'response.in_progress', response: begun } as never,
  added(0),
  on(0, 'reasoning_text.delta', { delta: 'hm ' }),
  on(0, 'reasoning_summary_text.delta', { delta: 'short' }),
  on(0, 'reasoning_text.delta', { delta: 'é' }),
  done(0),
  added(1),
  on(1, 'output_text.delta', { delta: 'Hél', logprobs: [] }),
  on(1, 'output_text.delta', { delta: '' }),
  on(1, 'output_text.delta', { delta: 'lo 🙂', logprobs: [{ token: 'lo', logprob: -1, top_logprobs: [] }] }),
  on(1, 'output_text.annotation.added', { annotation: { type: 'url_citation' } }),
  done(1),
  added(2),
  { type: 'response.web_search_call.searching', output_index: 2 } as never,
  done(2),
  added(3),
  on(3, 'function_call_arguments.delta', { delta: '{"x"' }),
  on(3, 'function_call_arguments.delta', { delta: ':1}' }),
  done(3),
  { type: 'response.completed', response: ended } as never,
])
const choice = 0
const end = [
  { type: 'choice_done', choice, reason: 'tool_calls', matchedStop: null },
  {
    type: 'finished',
    usage: { inputTokens: 9, cachedTokens: 3, cacheWriteTokens: 0, outputTokens: 4, reasoningTokens: 0 },
  },
]

test('reasoning, text, calls and worker-specific items become events in order', () => {
  const { events, failures } = readStream(STREAM)
  expect(failures).toEqual([])
  expect(events[0]).toMatchObject({ type: 'started', id: 'resp_1', model: 'real', createdAtSec: 5 })
  const logprobs = [{ token: 'lo', logprob: -1, bytes: null, top: [] }]
  expect(events.slice(1)).toEqual([
    { type: 'reasoning', choice, delta: 'hm ' },
    { type: 'reasoning', choice, delta: 'é' },
    { type: 'reasoning_signature', choice, signature: 'sealed' },
    { type: 'text', choice, delta: 'Hél', logprobs: null },
    { type: 'text', choice, delta: 'lo 🙂', logprobs },
    { type: 'annotation', choice, annotation: { type: 'url_citation' } },
    { type: 'native_started', choice, number: 0, engine: 'responses', item: items[2] },
    {
      type: 'native_event',
      choice,
      engine: 'responses',
      of: { kind: 'native', number: 0 },
      event: { type: 'response.web_search_call.searching', output_index: 2 },
    },
    { type: 'native_item', choice, number: 0, engine: 'responses', item: items[2] },
    { type: 'tool_call', choice, index: 0, id: 'call_1', name: 'f' },
    { type: 'tool_arguments', choice, index: 0, delta: '{"x"' },
    { type: 'tool_arguments', choice, index: 0, delta: ':1}' },
    { type: 'tool_call_done', choice, index: 0 },
    ...end,
  ])
})

test.each([
  ['with ids', true],
  ['without ids', false],
])('events without an index, items %s: content is emitted once', (_, hasIds) => {
  const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] })
  const content = [{ type: 'output_text', text: 'Second' }]
  const named = (id: string, event: object) => ({ ...event, ...(hasIds && { item_id: id }) }) as never
  const given = (id: string, item: object) => ({ ...item, ...(hasIds && { id }) })
  const output = [
    given('a', message('First')),
    given('b', { type: 'message', content }),
    given('c', items[3]),
  ]
  const stream = sse([
    { type: 'response.created', response: begun } as never,
    { type: 'response.output_item.added', item: given('a', message('')) } as never,
    named('a', { type: 'response.output_text.delta', delta: 'First' }),
    { type: 'response.output_item.done', item: output[0] } as never,
    // An item that does not begin.
    named('b', { type: 'response.output_text.delta', delta: 'Second' }),
    { type: 'response.some_new_event' },
    { type: 'response.output_item.done', item: output[1] } as never,
    { type: 'response.output_item.added', item: given('c', { ...items[3], arguments: '' }) } as never,
    named('c', { type: 'response.function_call_arguments.delta', delta: '{"x":1}' }),
    { type: 'response.output_item.done', item: output[2] } as never,
    { type: 'response.completed', response: { ...begun, status: 'completed', output } } as never,
  ])
  expect(readStream(stream).events.slice(1)).toMatchObject([
    { type: 'text', delta: 'First' },
    { type: 'text', delta: 'Second' },
    { type: 'native_event', event: { type: 'response.some_new_event' } },
    { type: 'tool_call', index: 0 },
    { type: 'tool_arguments', delta: '{"x":1}' },
    { type: 'tool_call_done', index: 0 },
    { type: 'choice_done' },
    { type: 'finished' },
  ])
})

test('events do not depend on the split of the bytes', () => {
  const { events } = readStream(STREAM)
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 12 }), (cuts) => {
      expect(readStream(STREAM, cuts).events).toEqual(events)
    }),
  )
})

test('a non-streamed response, and items without deltas, give the events of their deltas', () => {
  const out = sink()
  const reader = jsonAnswerReader(new ResponseJson(attempt, out), out, 1 << 20)
  reader.onStart([])
  reader.onData(Buffer.from(JSON.stringify(ended)))
  reader.onEnd()
  const short = readStream(
    sse([
      { type: 'response.created', response: begun } as never,
      added(0),
      done(0),
      { type: 'response.completed', response: ended } as never,
    ]),
  )
  for (const { events } of [out, short]) {
    expect(events.map(({ type }) => type)).toEqual([
      'started',
      'reasoning',
      'reasoning_signature',
      'text',
      'native_started',
      'native_item',
      'tool_call',
      'tool_arguments',
      'tool_call_done',
      'choice_done',
      'finished',
    ])
    expect(events.find(({ type }) => type === 'reasoning')).toMatchObject({ delta: 'hm é' })
    expect(events.slice(-2)).toEqual(end)
  }
})

test('an answer without response.created starts before any other event', () => {
  const firsts = [
    on(0, 'output_text.delta', { delta: 'a' }),
    on(0, 'refusal.delta', { delta: 'a' }),
    on(0, 'reasoning_text.delta', { delta: 'a' }),
    on(0, 'output_text.annotation.added', { annotation: {} }),
    added(2),
    added(3),
    done(1),
    { type: 'response.unknown' },
    { type: 'response.completed', response: ended },
  ]
  for (const first of firsts) {
    const types = readStream(
      sse([first, { type: 'response.completed', response: ended } as never]),
    ).events.map(({ type }) => type)
    expect([types.indexOf('started'), types.lastIndexOf('started')], first.type).toEqual([0, 0])
    expect(types.at(-1)).toBe('finished')
  }
})

test('a service that takes no stop strings: the gateway finds them and cancels the request', () => {
  const parts = ['one E', 'N', 'D two'].map((delta) => on(0, 'output_text.delta', { delta }))
  const whole = {
    ...ended,
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'one END two' }] }],
  }
  for (const events of [parts, [{ type: 'response.completed', response: whole }]]) {
    const worker = workerEntry({ slot: 0, provider: 'openai' })
    const out = { ...sink(), isStopped: false, stop: () => undefined as void }
    out.stop = () => {
      out.isStopped = true
    }
    const stopping = {
      ...attempt,
      worker,
      request: { sampling: { stop: ['END'] } },
    } as unknown as EngineAttempt
    const reader = jsonAnswerReader(new ResponseJson(stopping, out), out, 1 << 20)
    reader.onStart(['content-type', 'text/event-stream'])
    reader.onData(sse(events as never))
    const said = out.events.map((event) => (event.type === 'text' ? event.delta : '')).join('')
    expect([said, out.isStopped]).toEqual(['one ', true])
    expect(out.events.slice(-2)).toMatchObject([
      { type: 'choice_done', reason: 'stop', matchedStop: 'END' },
      { type: 'finished' },
    ])
  }
})

test('finish reasons are mapped', () => {
  const reasonOf = (response: object) =>
    readStream(sse([{ type: 'response.incomplete', response } as never])).events.find(
      (event) => event.type === 'choice_done',
    )
  const cut = (reason: string) => ({ status: 'incomplete', incomplete_details: { reason } })
  expect(reasonOf(cut('max_output_tokens'))).toMatchObject({ reason: 'length' })
  expect(reasonOf(cut('content_filter'))).toMatchObject({ reason: 'content_filter' })
  expect(reasonOf({ status: 'cancelled' })).toMatchObject({ reason: 'abort' })
})

test('errors have their HTTP status; a truncated stream does not finish', () => {
  const failed = (event: object) => readStream(sse([event as never])).failures[0]
  const flat = failed({ type: 'error', code: 'rate_limit_exceeded', message: 'slow down' })
  expect([flat.status, flat.isRetryable]).toEqual([429, true])
  const nested = failed({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } })
  expect([nested.status, nested.isRetryable, nested.message]).toEqual([400, false, 'no'])
  const response = { status: 'failed', error: { code: 'server_error', message: 'x' } }
  expect(failed({ type: 'response.failed', response }).status).toBe(502)
  expect(failed({ type: 'response.failed', response: { status: 'failed' } }).status).toBe(502)
  expect(readStream(sse([])).events).toEqual([])
  expect(() => readStream(Buffer.from('data: {"type":\n\n'))).toThrow(SyntaxError)
})

test('an endless event fails at the size limit', () => {
  const out = sink()
  const reader = jsonAnswerReader(new ResponseJson(attempt, out), out, 1024)
  reader.onStart(['content-type', 'text/event-stream'])
  reader.onData(Buffer.from(`data: {"x":"${'y'.repeat(2_000)}`))
  expect(out.failures.map(({ code }) => code)).toEqual(['worker_answer_too_long'])
})
