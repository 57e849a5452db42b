/** Streams of translated messages: event order, malformed chat chunks, failures at every point, pings, client disconnects. */
import { expect, test } from 'vitest'
import {
  dropAnswer,
  type Script,
  type StreamStep,
  sseAnswer,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { accumulate, CHAT, HELLO, openMessages, readEvents } from './messages-fleet.ts'

const chunk = (delta: object, reason: string | null = null, more: object = {}) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason, ...more }] })
const call = (index: number, id: string | undefined, name: string | undefined, text?: string) => ({
  tool_calls: [{ index, id, function: { name, arguments: text } }],
})
const TOOLS = [{ name: 'a' }, { name: 'b' }].map(({ name }) => ({ name, input_schema: { type: 'object' } }))

async function streamOf(steps: readonly StreamStep[], body: Record<string, unknown> = {}) {
  const { create, workers } = await openMessages()
  workers[0].script(CHAT, sseAnswer(steps))
  const reply = await create({ stream: true, tools: TOOLS, ...body })
  expect(reply.status).toBe(200)
  return readEvents(await reply.text())
}

test('a plain stream has the documented event order', async () => {
  const events = await streamOf([
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'He' }),
    chunk({ content: 'llo' }),
    chunk({}, 'stop'),
    JSON.stringify({ choices: [], usage: { prompt_tokens: 6, completion_tokens: 2 } }),
    '[DONE]',
  ])
  expect(events.map(({ type }) => type)).toEqual([
    'message_start',
    'ping',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  expect(events[0]).toMatchObject({
    message: { type: 'message', role: 'assistant', content: [], stop_reason: null, stop_sequence: null },
  })
  // Never 0, even if the worker sends its usage only at the end.
  expect(
    (events[0] as unknown as { message: { usage: { input_tokens: number } } }).message.usage.input_tokens,
  ).toBeGreaterThan(0)
  expect(events[6]).toEqual({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 2 },
  })
})

const fixtures: readonly (readonly [title: string, deltas: readonly object[], want: readonly object[]])[] = [
  [
    'two calls written by turns',
    [
      call(0, 'x', 'a', ''),
      call(1, 'y', 'b', ''),
      call(0, undefined, undefined, '{"n":'),
      call(1, undefined, undefined, '{"m":2}'),
      call(0, undefined, undefined, '1}'),
    ],
    [
      { type: 'tool_use', id: 'toolu_x', name: 'a', input: { n: 1 } },
      { type: 'tool_use', id: 'toolu_y', name: 'b', input: { m: 2 } },
    ],
  ],
  [
    'an id that arrives late, and one that is missing',
    [call(0, undefined, 'a', ''), call(0, 'late', undefined, '{}'), call(1, undefined, 'b', '{"m":1}')],
    [
      { type: 'tool_use', id: 'toolu_late', name: 'a', input: {} },
      { type: 'tool_use', id: expect.stringMatching(/^toolu_call_/), name: 'b', input: { m: 1 } },
    ],
  ],
  [
    'repeated arguments',
    [
      call(0, 'x', 'a', '{"n"'),
      call(0, undefined, undefined, ':1}'),
      call(0, undefined, undefined, '{"n":1}'),
    ],
    [{ type: 'tool_use', id: 'toolu_x', name: 'a', input: { n: 1 } }],
  ],
  [
    'text after a call, and white space before one',
    [{ content: '\n\n' }, call(0, 'x', 'a', '{}'), { content: 'so' }],
    [
      { type: 'tool_use', id: 'toolu_x', name: 'a', input: {} },
      { type: 'text', text: 'so' },
    ],
  ],
  [
    'text and thinking in the middle of a call follow after its end',
    [
      call(0, 'x', 'a', '{"n":'),
      { content: 'so' },
      { reasoning_content: 'hm' },
      call(0, undefined, undefined, '1}'),
    ],
    [
      { type: 'tool_use', id: 'toolu_x', name: 'a', input: { n: 1 } },
      { type: 'text', text: 'so' },
      { type: 'thinking', thinking: 'hm', signature: '' },
    ],
  ],
  [
    'the same index for all calls',
    [call(0, 'x', 'a', '{}'), call(0, 'y', 'b', '{"m":1}')],
    [
      { type: 'tool_use', id: 'toolu_x', name: 'a', input: {} },
      { type: 'tool_use', id: 'toolu_y', name: 'b', input: { m: 1 } },
    ],
  ],
]

test.each(fixtures)('%s', async (_title, deltas, want) => {
  const events = await streamOf([...deltas.map((delta) => chunk(delta)), chunk({}, 'stop'), '[DONE]'])
  const message = accumulate(events)
  expect(message.content).toEqual(want)
  expect(message.stop_reason).toBe('tool_use')
})

test('the input of a call is streamed in the pieces that the worker sends', async () => {
  const pieces = ['{"te', 'xt":"', 'a', 'b"}']
  const events = await streamOf([
    chunk(call(0, 'x', 'a', '')),
    ...pieces.map((piece) => chunk(call(0, undefined, undefined, piece))),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ])
  const inputDeltas = events.flatMap(
    (event) => (event.delta as { partial_json?: string } | undefined)?.partial_json ?? [],
  )
  expect(inputDeltas).toEqual(pieces)
})

test('disable_parallel_tool_use drops all calls but the first', async () => {
  const events = await streamOf(
    [chunk(call(0, 'x', 'a', '{}')), chunk(call(1, 'y', 'b', '{}')), chunk({}, 'tool_calls'), '[DONE]'],
    { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  )
  expect(accumulate(events).content).toEqual([{ type: 'tool_use', id: 'toolu_x', name: 'a', input: {} }])
})

test('thinking comes first and unsigned; display omitted hides its text', async () => {
  const steps = [
    chunk({ reasoning_content: 'h' }),
    chunk({ reasoning: 'm' }),
    chunk({ content: 'a' }),
    chunk({}, 'stop'),
    '[DONE]',
  ]
  const shown = accumulate(await streamOf(steps, { thinking: { type: 'adaptive' } }))
  expect(shown.content).toEqual([
    { type: 'thinking', thinking: 'hm', signature: '' },
    { type: 'text', text: 'a' },
  ])
  const omitted = await streamOf(steps, { thinking: { type: 'adaptive', display: 'omitted' } })
  expect(accumulate(omitted).content[0]).toEqual({ type: 'thinking', thinking: '', signature: '' })
  expect(JSON.stringify(omitted)).not.toContain('signature_delta')
  expect(accumulate(await streamOf(steps, { thinking: { type: 'disabled' } })).content).toEqual([
    { type: 'text', text: 'a' },
  ])
})

test('stop reasons and usage of streams', async () => {
  const end = async (reason: string, more: object = {}, usage?: object) => {
    const last = usage === undefined ? [] : [JSON.stringify({ choices: [], usage })]
    const steps = [chunk({ content: 'abcdefgh' }), chunk({}, reason, more), ...last, '[DONE]']
    return accumulate(await streamOf(steps, { stop_sequences: ['END'] }))
  }
  expect(await end('stop', { stop_reason: 'END' })).toMatchObject({
    stop_reason: 'stop_sequence',
    stop_sequence: 'END',
  })
  expect(await end('stop', { matched_stop: 7 })).toMatchObject({
    stop_reason: 'end_turn',
    stop_sequence: null,
  })
  expect(await end('length')).toMatchObject({ stop_reason: 'max_tokens' })
  const cached = { prompt_tokens: 100, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 30 } }
  expect((await end('stop', {}, cached)).usage).toMatchObject({
    input_tokens: 70,
    cache_read_input_tokens: 30,
    output_tokens: 4,
  })
  expect((await end('stop')).usage).toMatchObject({ output_tokens: 2, estimated: true })
})

const first = chunk({ content: 'He' })
const failures: readonly (readonly [title: string, script: Script, type: string])[] = [
  ['a reset', sseAnswer([first, { waitMs: 40 }, { drop: 'reset' }]), 'api_error'],
  ['an end without finish_reason', sseAnswer([first, { waitMs: 40 }]), 'api_error'],
  ['an error event', sseAnswer([first, { waitMs: 40 }, '{"error":{"message":"no memory"}}']), 'api_error'],
  ['an event that is not JSON', sseAnswer([first, { waitMs: 40 }, '{"choices":']), 'api_error'],
  ['an abort by the engine', sseAnswer([first, { waitMs: 40 }, chunk({}, 'abort'), '[DONE]']), 'api_error'],
  ['silence', sseAnswer([first, { hang: true }]), 'timeout_error'],
]

test.each(failures)(
  '%s in mid-stream is an error event, and no event follows',
  async (_title, script, type) => {
    const { create, workers, get } = await openMessages({ kernel: { upstream: { idleMs: 300 } } })
    workers[0].script(CHAT, script)
    const reply = await create({ stream: true })
    const events = readEvents(await reply.text())
    expect(events.at(-1)).toMatchObject({
      type: 'error',
      error: { type },
      request_id: reply.headers.get('request-id'),
    })
    expect(events.map((event) => event.type)).not.toContain('message_stop')
    const { workers: listed } = (await (await get('/workers')).json()) as { workers: { load?: number }[] }
    expect(listed.map(({ load }) => load ?? 0)).toEqual([0])
  },
)

test('a worker that drops the connection before its first event is a plain error', async () => {
  const { create, workers } = await openMessages({ kernel: { retry: { maxAttempts: 1 } } })
  workers[0].script(CHAT, dropAnswer())
  const reply = await create({ stream: true })
  expect([reply.status, ((await reply.json()) as { error: { type: string } }).error.type]).toEqual([
    502,
    'api_error',
  ])
})

test('pings are sent while the worker is silent', async () => {
  const { create, workers } = await openMessages({ messages: { pingMs: 40 } })
  workers[0].script(CHAT, sseAnswer([first, { waitMs: 2_000 }, chunk({}, 'stop'), '[DONE]']))
  const events = readEvents(await (await create({ stream: true })).text())
  expect(events.filter(({ type }) => type === 'ping').length).toBeGreaterThanOrEqual(3)
  expect(accumulate(events).stop_reason).toBe('end_turn')
})

test('a client disconnect closes the upstream request', async () => {
  const { gateway, workers } = await openMessages()
  workers[0].script(CHAT, sseAnswer([first, { hang: true }]))
  for (const stream of [true, false]) {
    const controller = new AbortController()
    const init = { method: 'POST', body: JSON.stringify({ ...HELLO, stream }), signal: controller.signal }
    const asked = fetch(`${gateway.url}/v1/messages`, init).catch(() => null)
    const request = await workers[0].received(CHAT, stream ? 1 : 2)
    controller.abort()
    await asked
    await request.closed
    expect(request.isAborted).toBe(true)
  }
})

test('code points and emoji survive any chunk boundaries', async () => {
  const text = 'a🙂é漢\u{1F468}\u200D\u{1F469}\\"\n'
  const bytes = Buffer.from(
    `data: ${chunk({ content: text })}\n\ndata: ${chunk({}, 'stop')}\n\ndata: [DONE]\n\n`,
  )
  const { create, workers } = await openMessages()
  const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) =>
    bytes.subarray(at * 7, at * 7 + 7),
  )
  workers[0].script(CHAT, { kind: 'stream', steps: pieces, headers: { 'content-type': 'text/event-stream' } })
  const events = readEvents(await (await create({ stream: true })).text())
  expect(accumulate(events).content).toEqual([{ type: 'text', text }])
})

test('a client that does not read pauses the worker, and receives every event later', async () => {
  const { gateway, workers } = await openMessages()
  const delta = 'x'.repeat(50_000)
  const count = 1_000
  let sent = 0
  function* chunks() {
    for (; sent < count; sent++) yield `data: ${chunk({ content: delta })}\n\n`
    yield `data: ${chunk({}, 'stop')}\n\ndata: [DONE]\n\n`
  }
  workers[0].script(CHAT, streamAnswer(chunks(), { headers: { 'content-type': 'text/event-stream' } }))
  const stream = openSse(`${gateway.url}/v1/messages`, { body: { ...HELLO, stream: true } })
  await stream.receive(1)
  stream.pause()
  // The socket buffers are full once nothing has moved for a while.
  for (let last = -1, unmoved = 0; unmoved < 5; last = sent) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    unmoved = last === sent ? unmoved + 1 : 0
  }
  expect(sent).toBeLessThan(count)
  stream.resume()
  await stream.done
  expect(stream.bodyLength).toBeGreaterThan(delta.length * count)
})
