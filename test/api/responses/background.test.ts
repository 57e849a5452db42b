/** Background responses: queueing, progress, streaming, cancellation, deletion, limits. */
import { afterEach, expect, test, vi } from 'vitest'
import type { HistoryService, ResponseRecord } from '#kernel'
import { StoredQueue } from '../../../plugins/state/history/background-queue.ts'
import { StoredEvents } from '../../../plugins/state/history/event-log.ts'
import { StoredResponses } from '../../../plugins/state/history/response-history.ts'
import { checkResponseEvents } from '../../support/response-events.ts'
import { sseAnswer } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import {
  CHAT,
  chatAnswer,
  chunk,
  historyPeek,
  newDirectory,
  openResponses,
  type ResponseJson,
  type ResponsesFleet,
} from './responses-fleet.ts'

const DONE = [chunk({}, 'stop'), '[DONE]']
const FAST = { plugins: { responses: { background: { pollMs: 50 } } } }

async function until(
  fleet: ResponsesFleet,
  id: string,
  isThere: (reply: ResponseJson) => boolean,
): Promise<ResponseJson> {
  for (;;) {
    const reply = await fleet.fetchJson('GET', `/v1/responses/${id}`)
    if (isThere(reply)) return reply
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

afterEach(() => void vi.restoreAllMocks())

const isOver = ({ status }: ResponseJson) => status !== 'queued' && status !== 'in_progress'

test('a background response is queued immediately and completes like a foreground one', async () => {
  const fleet = await openResponses(chatAnswer('hello'), FAST)
  const queued = await fleet.create({ input: 'hi', background: true, metadata: { a: 'b' } })
  expect(queued).toMatchObject({ status: 'queued', background: true, output: [], error: null, usage: null })
  const done = await until(fleet, queued.id, isOver)
  expect(done).toMatchObject({
    id: queued.id,
    status: 'completed',
    background: true,
    created_at: queued.created_at,
    metadata: { a: 'b' },
    usage: { total_tokens: 15 },
  })
  expect(done.completed_at).toEqual(expect.any(Number))
  const sync = await fleet.create({ input: 'hi' })
  const content = ({ output }: ResponseJson) => output.map((item: ResponseJson) => item.content)
  expect(content(done)).toEqual(content(sync))
  const followUp = await fleet.create({ input: 'more', previous_response_id: done.id })
  expect(followUp.status).toBe('completed')
})

test('what a request and an answer lose on the way is named in the response, which has no header later', async () => {
  const answer = sseAnswer([chunk({ content: 'x', brand_new: 1 }), ...DONE])
  const fleet = await openResponses(answer, FAST)
  const body = { model: 'test-model', input: 'hi', seed: 1, background: true }
  const accepted = await fleet.post('/v1/responses', body)
  expect(accepted.headers.get('x-weir-warning')).toBe('members_ignored; count=1; names="seed"')
  const { id } = (await accepted.json()) as ResponseJson
  const done = await until(fleet, id, isOver)
  expect(done.x_weir_warning).toBe(
    'members_ignored; count=1; names="seed", members_ignored; count=1; names="choices.delta.brand_new"',
  )
  const plain = await fleet.create({ input: 'hi' })
  expect(plain).not.toHaveProperty('x_weir_warning')
})

test('progress is readable while the response runs, and a follow-up is rejected until its end', async () => {
  const gate = Promise.withResolvers<void>()
  const fleet = await openResponses(
    () =>
      sseAnswer([
        chunk({ reasoning_content: 'hm' }),
        chunk({ content: 'x' }),
        { until: gate.promise },
        ...DONE,
      ]),
    FAST,
  )
  const { id } = await fleet.create({ input: 'hi', background: true })
  const running = await until(
    fleet,
    id,
    ({ status, output }) => status === 'in_progress' && output.length > 0,
  )
  expect(running.output).toMatchObject([{ type: 'reasoning', status: 'completed' }])
  const early = await fleet.create({ input: 'x', previous_response_id: id }, 400)
  expect(early.error.code).toBe('previous_response_in_progress')
  gate.resolve()
  expect((await until(fleet, id, isOver)).output).toHaveLength(2)
})

test('a response ends only after its events are stored', async () => {
  const isHeld = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const { append } = StoredEvents.prototype
  vi.spyOn(StoredEvents.prototype, 'append').mockImplementation(async function (this: StoredEvents, ...call) {
    if (call[3].some((frame) => frame.includes('response.output_item.done'))) {
      isHeld.resolve()
      await gate.promise
    }
    return append.apply(this, call)
  })
  const fleet = await openResponses(chatAnswer('hello'), FAST)
  const { id } = await fleet.create({ input: 'hi', background: true })
  await isHeld.promise
  const stream = openSse(`${fleet.gateway.url}/v1/responses/${id}?stream=true`)
  // Long enough to be stored as ended if the gateway did not wait.
  for (let looks = 0; looks < 20; looks++)
    expect((await fleet.fetchJson('GET', `/v1/responses/${id}`)).status).toBe('in_progress')
  gate.resolve()
  await stream.done
  expect(checkResponseEvents(stream.events).response.status).toBe('completed')
})

test('a running response can be streamed live, and resumed from the middle', async () => {
  const gate = Promise.withResolvers<void>()
  const steps = [chunk({ content: 'one ' }), chunk({ content: 'two ' })]
  const fleet = await openResponses(
    () => sseAnswer([...steps, { until: gate.promise }, chunk({ content: 'three' }), ...DONE]),
    FAST,
  )
  const { id } = await fleet.create({ input: 'hi', background: true })
  const path = `${fleet.gateway.url}/v1/responses/${id}?stream=true`
  const early = openSse(path)
  await early.receive(6)
  early.close()
  const first = openSse(path)
  const late = openSse(`${path}&starting_after=4`)
  await Promise.all([first.receive(6), late.receive(1)])
  gate.resolve()
  await Promise.all([first.done, late.done])
  const { response, text } = checkResponseEvents(first.events)
  expect(text).toBe('one two three')
  expect(late.events.map(({ data }) => data)).toEqual(first.events.slice(5).map(({ data }) => data))
  expect(response).toEqual(await fleet.fetchJson('GET', `/v1/responses/${id}`))
  const again = openSse(path)
  await again.done
  expect(again.events.map(({ data }) => data)).toEqual(first.events.map(({ data }) => data))
})

test('a running response is cancelled with its partial output, and a second cancellation returns the same', async () => {
  const forever = new Promise(() => {})
  const fleet = await openResponses(() => sseAnswer([chunk({ content: 'part' }), { until: forever }]), FAST)
  const { id } = await fleet.create({ input: 'hi', background: true })
  const stream = openSse(`${fleet.gateway.url}/v1/responses/${id}?stream=true`)
  await stream.receive(5)
  const cancelled = await fleet.fetchJson('POST', `/v1/responses/${id}/cancel`)
  expect(cancelled).toMatchObject({ status: 'cancelled', output: [{ content: [{ text: 'part' }] }] })
  await fleet.workers[0].requestsTo(CHAT)[0].closed
  expect(await fleet.fetchJson('POST', `/v1/responses/${id}/cancel`)).toEqual(cancelled)
  await stream.done
  expect(checkResponseEvents(stream.events).response.status).toBe('cancelled')
  const refused = await fleet.create({ input: 'x', previous_response_id: id }, 400)
  expect(refused.error.code).toBe('invalid_previous_response')
})

test('a completed or unknown response cannot be cancelled', async () => {
  const fleet = await openResponses(chatAnswer('x'), FAST)
  const { id } = await fleet.create({ input: 'hi' })
  const refused = await fleet.fetchJson('POST', `/v1/responses/${id}/cancel`, 400)
  expect(refused.error.code).toBe('response_already_completed')
  await fleet.fetchJson('POST', '/v1/responses/resp_none/cancel', 404)
})

const message = {
  id: `msg_${'1'.repeat(32)}`,
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'whole', annotations: [], logprobs: [] }],
}

/** A background response of another gateway, in progress, with the given frames in its log. */
async function begunElsewhere(history: HistoryService, firstNumber: number, count: number) {
  const id = `resp_${'0'.repeat(31)}${count}`
  const reply = { id, object: 'response', status: 'in_progress', background: true }
  const input = [{ id: `msg_${'2'.repeat(32)}`, type: 'message', role: 'user', content: [] }]
  const ids = { previousResponseId: null, conversationId: null }
  const record = { id, createdAtSec: 1_800_000_000, reply, input, output: [], ...ids, facts: {} }
  await history.responses.create('anonymous', { ...record, status: 'in_progress' })
  const frames = (run: string, from: number, length: number) =>
    Array.from({ length }, (_, index) => `event: ${run}\ndata: {"sequence_number":${from + index}}\n\n`)
  const append = (run: string, from: number, length: number) =>
    history.events.append('anonymous', id, from, frames(run, from, length))
  const end = (facts = {}) =>
    history.responses.finish('anonymous', {
      ...record,
      status: 'completed',
      reply: { ...reply, status: 'completed', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
      output: [message],
      facts,
    })
  await append('first', firstNumber, count)
  return { id, append, end }
}

test('after a restarted run a stream gets the end of the response, and no events of the second run', async () => {
  const { plugin, get } = historyPeek()
  const fleet = await openResponses(undefined, { ...FAST, own: [plugin] })
  const { id, append, end } = await begunElsewhere(get(), 0, 4)
  const stream = openSse(`${fleet.gateway.url}/v1/responses/${id}?stream=true`)
  await stream.receive(4)
  await get().events.clear('anonymous', id)
  await get().responses.update('anonymous', id, { facts: { run: 1 } })
  await append('second', 0, 7)
  await end({ run: 1 })
  await stream.done
  const names = stream.events.map(({ event, data }) => event || data)
  expect(names).toEqual(['first', 'first', 'first', 'first', 'response.completed', '[DONE]'])
  expect(JSON.parse(stream.events[4].data)).toMatchObject({
    sequence_number: 4,
    response: { output: [message] },
  })
})

test('a log without its beginning is replaced by the complete events', async () => {
  const { plugin, get } = historyPeek()
  const fleet = await openResponses(undefined, { ...FAST, own: [plugin] })
  const { id, end } = await begunElsewhere(get(), 3, 5)
  const stream = openSse(`${fleet.gateway.url}/v1/responses/${id}?stream=true`)
  await end()
  await stream.done
  expect(checkResponseEvents(stream.events).text).toBe('whole')
})

test.each(['cancelled', 'failed', 'deleted'] as const)(
  '%s by another gateway: the stream log ends accordingly, and the conversation is released',
  async (status) => {
    const gate = Promise.withResolvers<void>()
    const { plugin, get } = historyPeek()
    const steps = [chunk({ content: 'x' }), { until: gate.promise }, ...DONE]
    const fleet = await openResponses(() => sseAnswer(steps), {
      plugins: { ...FAST.plugins, conversations: {} },
      own: [plugin],
    })
    const { id: conversation } = (await (await fleet.post('/v1/conversations', {})).json()) as ResponseJson
    const { id } = await fleet.create({ input: 'hi', background: true, conversation })
    const stream = openSse(`${fleet.gateway.url}/v1/responses/${id}?stream=true`)
    await stream.receive(5)
    stream.close()
    const { responses, events } = get()
    const record = (await responses.get('anonymous', id)) as ResponseRecord
    if (status === 'deleted') await responses.delete('anonymous', id)
    else await responses.finish('anonymous', { ...record, status, reply: { ...record.reply, status } })
    gate.resolve()
    const lastFrame = async () => (await events.read('anonymous', id, -1)).at(-1)?.frame
    const expected = status === 'failed' ? ['failed', 'failed'] : ['incomplete', 'cancelled']
    await expect.poll(lastFrame).toMatch(`event: response.${expected[0]}\n`)
    expect(await lastFrame()).toContain(`"status":"${expected[1]}"`)
    const next = () => fleet.post('/v1/responses', { model: 'test-model', input: 'more', conversation })
    await expect.poll(async () => (await next()).status).toBe(200)
  },
)

test('a response that is deleted while it runs stays deleted', async () => {
  const gate = Promise.withResolvers<void>()
  const fleet = await openResponses(
    () => sseAnswer([chunk({ content: 'x' }), { until: gate.promise }, ...DONE]),
    FAST,
  )
  const { id } = await fleet.create({ input: 'hi', background: true })
  const request = await fleet.workers[0].received(CHAT)
  await fleet.fetchJson('DELETE', `/v1/responses/${id}`)
  gate.resolve()
  await request.closed
  await fleet.fetchJson('GET', `/v1/responses/${id}`, 404)
})

test('a worker failure gives a failed response', async () => {
  const fleet = await openResponses(() => sseAnswer([chunk({ content: 'x' }), { drop: 'close' }]), {
    ...FAST,
    kernel: { retry: { maxAttempts: 1 } },
  })
  const { id } = await fleet.create({ input: 'hi', background: true })
  const failed = await until(fleet, id, isOver)
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'server_error' },
    output: [{ status: 'incomplete' }],
  })
})

test.each([
  ['its end cannot be stored', { finish: 3 }, 'failed'],
  ['it cannot start, and that cannot be stored', { update: 1, finish: 3 }, 'failed'],
  ['its record cannot be read', { get: 3 }, 'completed'],
  ['its job cannot be dropped', { drop: 3 }, 'completed'],
] as const)('storage failures while %s leave no response in progress', async (_, away, status) => {
  const fleet = await openResponses(chatAnswer('hello'), FAST)
  const failing = (target: object, calls: Readonly<Record<string, number>>) => {
    for (const [name, times] of Object.entries(calls)) {
      if (!(name in target)) continue
      const spy = vi.spyOn(target as Record<string, () => Promise<unknown>>, name)
      for (let time = 0; time < times; time++) spy.mockRejectedValueOnce(new Error('away for a while'))
    }
  }
  failing(StoredResponses.prototype, away)
  failing(StoredQueue.prototype, away)
  const { id } = await fleet.create({ input: 'hi', background: true })
  if ('get' in away)
    await vi.waitFor(() =>
      expect(vi.mocked(StoredResponses.prototype.get).mock.calls.length).toBeGreaterThan(3),
    )
  expect((await until(fleet, id, isOver)).status).toBe(status)
})

test('a response waits for its busy conversation, and other responses run meanwhile', async () => {
  const gate = Promise.withResolvers<void>()
  const fleet = await openResponses(chatAnswer('x'), {
    plugins: { conversations: {}, responses: { background: { pollMs: 50, maxRunningPerTenant: 1 } } },
  })
  fleet.workers[0].once(CHAT, () => sseAnswer([{ until: gate.promise }, chunk({ content: 'x' }), ...DONE]))
  const { id: conversation } = (await (await fleet.post('/v1/conversations', {})).json()) as ResponseJson
  const first = fleet.stream({ input: 'first', conversation })
  await fleet.workers[0].received(CHAT)
  const { id } = await fleet.create({ input: 'second', conversation, background: true })
  const other = await fleet.create({ input: 'other', background: true })
  expect((await until(fleet, other.id, isOver)).status).toBe('completed')
  expect((await until(fleet, id, () => true)).status).toBe('in_progress')
  gate.resolve()
  await first
  expect((await until(fleet, id, isOver)).status).toBe('completed')
})

test('running and waiting responses are limited per tenant', async () => {
  const gate = Promise.withResolvers<void>()
  const fleet = await openResponses(
    () => sseAnswer([{ until: gate.promise }, chunk({ content: 'x' }), ...DONE]),
    {
      plugins: { responses: { background: { pollMs: 50, maxRunningPerTenant: 2, maxWaitingPerTenant: 3 } } },
    },
  )
  const ids: string[] = []
  for (let index = 0; index < 2; index += 1)
    ids.push((await fleet.create({ input: 'hi', background: true })).id)
  await fleet.workers[0].received(CHAT, 2)
  for (let index = 0; index < 3; index += 1)
    ids.push((await fleet.create({ input: 'hi', background: true })).id)
  const full = await fleet.post('/v1/responses', { model: 'test-model', input: 'hi', background: true })
  expect([full.status, full.headers.get('retry-after')]).toEqual([429, '5'])
  expect(((await full.json()) as ResponseJson).error).toMatchObject({
    type: 'rate_limit_error',
    code: 'queue_full',
  })
  expect(fleet.workers[0].requestsTo(CHAT)).toHaveLength(2)
  gate.resolve()
  for (const id of ids) expect((await until(fleet, id, isOver)).status).toBe('completed')
})

test('an invalid previous response or conversation is rejected immediately', async () => {
  const fleet = await openResponses(chatAnswer('x'), FAST)
  const gone = await fleet.create({ input: 'hi', background: true, previous_response_id: 'resp_no' }, 400)
  expect(gone.error.code).toBe('previous_response_not_found')
  await fleet.create({ input: 'hi', background: true, conversation: 'conv_no' }, 404)
})

test('a response that waits for its conversation at shutdown is started by the next gateway', async () => {
  const plugins = {
    conversations: {},
    storage: { dir: newDirectory() },
    responses: { background: { pollMs: 50, afterCrash: 'restart' } },
  }
  const forever = new Promise(() => {})
  const first = await openResponses(() => sseAnswer([chunk({ content: 'half' }), { until: forever }]), {
    plugins,
  })
  const { id: conversation } = (await (await first.post('/v1/conversations', {})).json()) as ResponseJson
  const stream = openSse(`${first.gateway.url}/v1/responses`, {
    body: { model: 'test-model', stream: true, input: 'first', conversation },
  })
  await stream.receive(5)
  const { id } = await first.create({ input: 'second', conversation, background: true })
  await until(first, id, ({ status }) => status === 'in_progress')
  await first.gateway.stop()
  const second = await openResponses(undefined, { plugins })
  expect((await until(second, id, isOver)).status).toBe('completed')
})

test('storage failures during the takeover of lost work leave no response in progress', async () => {
  const plugins = { storage: { dir: newDirectory() }, responses: { background: { pollMs: 50 } } }
  const forever = new Promise(() => {})
  const first = await openResponses(() => sseAnswer([chunk({ content: 'half' }), { until: forever }]), {
    plugins,
  })
  const { id } = await first.create({ input: 'hi', background: true })
  await until(first, id, ({ status }) => status === 'in_progress')
  await first.workers[0].received(CHAT)
  const finish = vi.spyOn(StoredResponses.prototype, 'finish')
  // One failure for the stopping gateway, two for the next one.
  for (let time = 0; time < 3; time++) finish.mockRejectedValueOnce(new Error('away for a while'))
  await first.gateway.stop()
  const second = await openResponses(undefined, { plugins })
  expect(await until(second, id, isOver)).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
  expect(finish.mock.calls.length).toBeGreaterThan(3)
})

test('a response that runs at shutdown fails or restarts, as configured', async () => {
  for (const afterCrash of ['fail', 'restart']) {
    const dir = newDirectory()
    const plugins = { storage: { dir }, responses: { background: { pollMs: 50, afterCrash } } }
    const forever = new Promise(() => {})
    const [ours, theirs] = [historyPeek(), historyPeek()]
    const first = await openResponses(() => sseAnswer([chunk({ content: 'half' }), { until: forever }]), {
      plugins,
      own: [ours.plugin],
    })
    const { id } = await first.create({ input: 'hi', background: true })
    const stream = openSse(`${first.gateway.url}/v1/responses/${id}?stream=true`)
    await stream.receive(5)
    stream.close()
    await ours.get().events.append('anonymous', id, 500, ['event: old\n\n'])
    await first.gateway.stop()
    const second = await openResponses(undefined, { plugins, own: [theirs.plugin] })
    const reply = await until(second, id, isOver)
    if (afterCrash === 'fail')
      expect(reply).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    else {
      expect(reply).toMatchObject({
        status: 'completed',
        output: [{ content: [{ text: 'Hello from the worker.' }] }],
      })
      const whole = openSse(`${second.gateway.url}/v1/responses/${id}?stream=true`)
      await whole.done
      expect(checkResponseEvents(whole.events)).toMatchObject({
        response: reply,
        text: 'Hello from the worker.',
      })
      expect(await theirs.get().events.read('anonymous', id, 400)).toEqual([])
    }
  }
})

test('accepted work counts once for the limits of its tenant', async () => {
  const peek = historyPeek()
  const fleet = await openResponses(chatAnswer('hello'), {
    own: [peek.plugin],
    plugins: { ...FAST.plugins, limits: { tenants: { default: { requestsPerMinute: 2 } } } },
  })
  const accepted = [1, 2].map(() => fleet.create({ input: 'hi', background: true }))
  for (const { id } of await Promise.all(accepted))
    await vi.waitFor(async () => {
      const record = await peek.get().responses.get('anonymous', id)
      expect(record?.status).toBe('completed')
    }, 60_000)
  expect((await fleet.post('/v1/responses', { model: 'test-model', input: 'hi' })).status).toBe(429)
})
