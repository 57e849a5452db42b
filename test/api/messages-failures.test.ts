/**
 * Faults at each event of a stream of messages, over every kind of worker: events that the client receives, requests that
 * the worker sees, and counters that return to their initial values.
 */
import { describe, expect, test } from 'vitest'
import type { Step } from '../support/scripted-engine.ts'
import { type ScriptedWorkerOptions, type StreamStep, streamAnswer } from '../support/scripted-worker.ts'
import { until } from './grpc-fleet.ts'
import { CHAT, HELLO, MESSAGES, NATIVE, openMessages, readEvents, VENDOR } from './messages-fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'

/** Faults that every kind of worker can play. */
type Fault = 'cut' | 'end' | 'error' | 'unreadable' | 'silence' | 'leave'
const FAULTS: readonly Fault[] = ['cut', 'end', 'error', 'unreadable', 'silence', 'leave']

interface Rig {
  readonly url: string
  readonly metricsUrl: string
  /** Plays the given number of events of a complete response, then the fault. */
  play(events: number, fault: Fault): void
  /** Resolves when the worker has the request. */
  reached(): Promise<unknown>
  /** Resolves when the worker has no open request, and has seen the cancellation if its response was incomplete. */
  settled(fault: Fault): Promise<void>
}

const IDLE_MS = 250
const kernel = {
  upstream: { idleMs: IDLE_MS, headMs: 1_000, firstTokenMs: 1_000 },
  retry: { maxAttempts: 1 },
}
const SSE = { headers: { 'content-type': 'text/event-stream' } }
/** Sends earlier events in a separate chunk. */
const BEAT: StreamStep = { waitMs: 25 }

const delta = (text: object, reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta: text, finish_reason: reason }] })}\n\n`
const call = (text: string, more: object = {}) => ({
  tool_calls: [{ index: 0, ...more, function: { arguments: text, ...('id' in more && { name: 'look' }) } }],
})
const CHAT_EVENTS = [
  delta({ role: 'assistant', content: '' }),
  delta({ reasoning_content: 'hm' }),
  delta({ content: 'I ' }),
  delta({ content: 'look.' }),
  delta(call('', { id: 'call_1' })),
  delta(call('{"a":')),
  delta(call('1}')),
  delta({}, 'tool_calls'),
]

const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const NATIVE_EVENTS = [
  event('message_start', {
    message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'v', content: [], usage: {} },
  }),
  event('ping', {}),
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'I look.' } }),
  event('content_block_stop', { index: 0 }),
  event('content_block_start', {
    index: 1,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
  }),
  event('content_block_delta', { index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } }),
  event('content_block_stop', { index: 1 }),
  event('message_delta', {
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: 3 },
  }),
]

const OVER_HTTP: Readonly<Record<Fault, { chat: readonly StreamStep[]; messages: readonly StreamStep[] }>> = {
  cut: { chat: [BEAT, { drop: 'reset' }], messages: [BEAT, { drop: 'reset' }] },
  end: { chat: [BEAT], messages: [BEAT] },
  error: {
    chat: [BEAT, 'data: {"error":{"message":"no memory"}}\n\n'],
    messages: [BEAT, event('error', { error: { type: 'overloaded_error', message: 'no memory' } })],
  },
  unreadable: {
    chat: [BEAT, 'data: {"choices":\n\n'],
    messages: [BEAT, 'event: content_bl', { drop: 'reset' }],
  },
  silence: { chat: [{ hang: true }], messages: [{ hang: true }] },
  leave: { chat: [{ hang: true }], messages: [{ hang: true }] },
}

async function overHttp(
  kind: 'chat' | 'messages',
  worker: ScriptedWorkerOptions & { spec?: Record<string, unknown> },
): Promise<Rig> {
  const { gateway, workers } = await openMessages({
    kernel,
    workers: [worker],
  })
  const route = kind === 'chat' ? CHAT : MESSAGES
  return {
    url: gateway.url,
    metricsUrl: gateway.metricsUrl as string,
    play(count, fault) {
      const events = (kind === 'chat' ? CHAT_EVENTS : NATIVE_EVENTS).slice(0, count)
      workers[0].requests.length = 0
      workers[0].script(route, streamAnswer([...events, ...OVER_HTTP[fault][kind]], SSE))
    },
    reached: () => workers[0].received(route),
    async settled(fault) {
      const request = await workers[0].received(route)
      await request.closed
      expect(workers[0].requestsTo(route)).toHaveLength(1)
      if (fault === 'silence' || fault === 'leave') expect(request.isAborted).toBe(true)
    },
  }
}

async function overGrpc(): Promise<Rig> {
  const { gateway, engine, engineAnswers } = await openGrpcMessages({ kernel })
  const beat = () => ({ waitFor: new Promise((resolve) => setTimeout(resolve, 25)) })
  const faults: Readonly<Record<Fault, () => readonly Step[]>> = {
    cut: () => [beat(), { status: 14, details: 'gone' }],
    end: () => [beat()],
    error: () => [beat(), { status: 13, details: 'no memory' }],
    unreadable: () => [beat(), { bytes: Buffer.from([0xff, 0xff, 0xff]) }, { hang: true }],
    silence: () => [{ hang: true }],
    leave: () => [{ hang: true }],
  }
  await engineAnswers('')
  const tokens = await tokensOf(gateway.url, '<think>h</think>I see.')
  return {
    url: gateway.url,
    metricsUrl: gateway.metricsUrl as string,
    play(count, fault) {
      engine.calls.length = 0
      engine.aborted.length = 0
      engine.script = () => [
        ...tokens.slice(0, count).map((id, at) => ({
          chunk: { tokenIds: [id], promptTokens: 7, completionTokens: at + 1 },
        })),
        ...faults[fault](),
      ]
    },
    reached: () => engine.received(),
    async settled(fault) {
      const { cancelled } = await engine.received()
      expect(engine.calls).toHaveLength(1)
      if (fault !== 'silence' && fault !== 'leave') return
      await cancelled
      await until(() => engine.aborted.length === 1)
    },
  }
}

async function tokensOf(url: string, prompt: string): Promise<number[]> {
  const init = {
    method: 'POST',
    body: JSON.stringify({ model: 'test-model', prompt, add_special_tokens: false }),
  }
  const reply = await fetch(`${url}/v1/tokenize`, {
    ...init,
    headers: { 'content-type': 'application/json' },
  })
  return ((await reply.json()) as { tokens: number[] }).tokens
}

/** Gauges and loads that must return to their initial values. */
async function countsOf({ url, metricsUrl }: Rig): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const text = await (await fetch(metricsUrl)).text()
  let isGauge = false
  for (const line of text.split('\n')) {
    if (line.startsWith('# TYPE ')) isGauge = line.endsWith(' gauge')
    else if (isGauge && /active|in_flight|inflight|queue|requests|load/.test(line))
      counts[line.slice(0, line.lastIndexOf(' '))] = Number(line.slice(line.lastIndexOf(' ') + 1))
  }
  const { workers } = (await (await fetch(`${url}/workers`)).json()) as {
    workers: { url: string; load: number }[]
  }
  for (const { url: worker, load } of workers) counts[`load of ${worker}`] = load
  // The connections of the test's own HTTP client open and close at any time.
  return Object.fromEntries(Object.entries(counts).filter(([name]) => !name.includes('connections')))
}

const rigs: readonly (readonly [kind: string, events: number, relayed: boolean, open: () => Promise<Rig>])[] =
  [
    ['a chat worker', CHAT_EVENTS.length, false, () => overHttp('chat', {})],
    ['a vendor', NATIVE_EVENTS.length, true, () => overHttp('messages', VENDOR)],
    ['an engine with the Messages route', NATIVE_EVENTS.length, true, () => overHttp('messages', NATIVE)],
    ['an engine over gRPC', 5, false, overGrpc],
  ]

describe.each(rigs)('messages over %s', (kind, events, isRelayed, open) => {
  test.each(FAULTS)('%s at each event of a stream', async (fault) => {
    const rig = await open()
    const before = await countsOf(rig)
    // A chat stream that lacks only [DONE] is complete.
    const most = kind === 'a chat worker' && fault === 'end' ? events - 1 : events
    for (let at = 0; at <= most; at++) {
      rig.play(at, fault)
      const controller = new AbortController()
      const asked = fetch(`${rig.url}/v1/messages`, {
        method: 'POST',
        body: JSON.stringify({ ...HELLO, stream: true, tools: [{ name: 'look' }] }),
        signal: controller.signal,
      })
      if (fault === 'leave') {
        const read = asked.then((reply) => reply.text()).catch(() => null)
        await rig.reached()
        setTimeout(() => controller.abort(), 20)
        expect(await read).toBeNull()
      } else await endsAsError(await asked, `${fault} at ${at}`, isRelayed)
      await rig.settled(fault)
      await expect.poll(() => countsOf(rig)).toEqual(before)
    }
  })
})

/** Expects an error event at the end of a stream, or an error status; never a normal end. */
async function endsAsError(reply: Response, what: string, isRelayed: boolean): Promise<void> {
  // On a loaded machine events and fault can arrive together: nothing was sent yet, and the response has an error status.
  const text = await reply.text()
  if (reply.status !== 200) {
    expect(reply.status, what).toBeGreaterThanOrEqual(400)
    expect(JSON.parse(text), what).toMatchObject({
      type: 'error',
      request_id: reply.headers.get('request-id'),
    })
    return
  }
  const whole = isRelayed
    ? text.slice(text.search(/event: (?!content_bl\n)/)).replace(/event: content_bl\n\n/, '')
    : text
  const events = readEvents(whole)
  expect(events.at(-1), what).toMatchObject({
    type: 'error',
    error: { type: expect.stringMatching(/_error$/) },
  })
  expect(
    events.map(({ type }) => type),
    what,
  ).not.toContain('message_stop')
  expect(
    events.filter(({ type }) => type === 'error'),
    what,
  ).toHaveLength(1)
}
