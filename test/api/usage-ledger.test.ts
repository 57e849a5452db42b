/** The usage plugin over real sockets: what is in the ledger, who may read it, budgets, and delayed ends of responses. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { type Fleet, openFleet } from './fleet.ts'

const KEYS = { apiKey: 'admin-key', tenantKeys: ['a:key-a', 'b:key-b'] }
const ADMIN = { authorization: 'Bearer admin-key' }
const A = { authorization: 'Bearer key-a' }
const B = { authorization: 'Bearer key-b' }
const CHAT = '/v1/chat/completions'
const USAGE = {
  prompt_tokens: 10,
  completion_tokens: 6,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
}
const PIECE = JSON.stringify({ choices: [{ delta: { content: 'x' } }] })
const STREAM = [PIECE, JSON.stringify({ choices: [], usage: USAGE }), '[DONE]']
const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-usage-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

async function open(usage: object, more: object = {}): Promise<Fleet> {
  const fleet = await openFleet({
    plugins: { auth: KEYS, storage: { dir: join(dir, 'data') }, usage, ...more },
  })
  fleet.workers[0].script(`POST ${CHAT}`, (request) =>
    (request.json() as { stream?: boolean }).stream === true
      ? sseAnswer(STREAM)
      : jsonAnswer({ choices: [], usage: USAGE }),
  )
  return fleet
}

async function report(fleet: Fleet, query = ''): Promise<Record<string, unknown>> {
  return (await (await fleet.get(`/usage${query}`, ADMIN)).json()) as Record<string, unknown>
}
const send = async (fleet: Fleet, headers: Record<string, string>, more: object = {}) => {
  const response = await fleet.post(CHAT, { ...body, ...more }, headers)
  await textUntilCut(response)
  return response
}

describe.each([false, true])('durable: %s', (durable) => {
  test('whole and streamed requests are in the ledger as soon as their response has ended', async () => {
    const fleet = await open({ durable, prices: [{ model: '*', input: 2, cachedInput: 0.5, output: 10 }] })
    await send(fleet, A)
    await send(fleet, A, { stream: true })
    await send(fleet, B)
    const amounts = (requests: number) => ({
      requests,
      input_tokens: 10 * requests,
      cached_tokens: 4 * requests,
      output_tokens: 6 * requests,
      reasoning_tokens: 2 * requests,
      cost: (requests * (6 * 2 + 4 * 0.5 + 6 * 10)) / 1e6,
    })
    const today = new Date().toISOString().slice(0, 10)
    expect(await report(fleet)).toEqual({
      object: 'usage',
      from: `${today.slice(0, 8)}01`,
      to: today,
      data: [
        { tenant: 'auth:a', model: 'test-model', ...amounts(2) },
        { tenant: 'auth:b', model: 'test-model', ...amounts(1) },
      ],
      total: amounts(3),
    })
    expect(await report(fleet, '?tenant=auth:b&group_by=day,key')).toMatchObject({
      data: [{ day: today, key: null, requests: 1 }],
    })
    expect(await report(fleet, '?model=other')).toMatchObject({ data: [], total: { requests: 0 } })
    expect(await report(fleet, '?to=2020-01-31')).toMatchObject({ from: '2020-01-01', data: [] })
  })

  test('refused and failed requests are not counted', async () => {
    const fleet = await open({ durable })
    fleet.workers[0].once(`POST ${CHAT}`, jsonAnswer({ usage: USAGE }, { status: 400 }))
    expect((await send(fleet, A)).status).toBe(400)
    expect((await send(fleet, A, { model: 'missing' })).status).toBe(404)
    expect((await report(fleet)).data).toEqual([])
  })

  test('a stream that breaks off counts what the worker has reported', async () => {
    const fleet = await open({ durable })
    const piece = JSON.stringify({
      choices: [{ delta: {} }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    })
    fleet.workers[0].once(`POST ${CHAT}`, sseAnswer([piece, { waitMs: 20 }, { drop: 'reset' }]))
    await send(fleet, A, { stream: true, stream_options: { include_usage: true } })
    await vi.waitFor(async () =>
      expect(await report(fleet)).toMatchObject({
        total: { requests: 1, input_tokens: 3, output_tokens: 2 },
      }),
    )
  })

  test('the ledger is the same after a restart', async () => {
    const fleet = await open({ durable })
    await send(fleet, A)
    const before = await report(fleet)
    await fleet.gateway.stop()
    expect(await report(await open({ durable }))).toEqual(before)
  })
})

test('durable: the bytes of a response do not change, and its end waits for the store', async () => {
  const fleet = await open({ durable: true })
  const response = await fleet.post(CHAT, { ...body, stream: true }, A)
  expect(await response.text()).toBe(`data: ${PIECE}\n\ndata: [DONE]\n\n`)
})

test('only operators may read usage; wrong parameters are named', async () => {
  const fleet = await open({})
  expect((await fleet.get('/usage', A)).status).toBe(401)
  expect((await fleet.get('/usage')).status).toBe(401)
  const message = async (query: string) => {
    const reply = await fleet.get(`/usage?${query}`, ADMIN)
    expect(reply.status).toBe(400)
    return ((await reply.json()) as { error: { message: string } }).error.message
  }
  expect(await message('from=2026-02-30')).toContain(
    "'from' must be a day such as 2026-11-01, got 2026-02-30",
  )
  expect(await message('from=2026-11-02&to=2026-11-01')).toContain("must not be after 'to'")
  expect(await message('tenant=a')).toContain("'tenant' must be auth:<id>")
  expect(await message('group_by=tenant,color')).toContain('must list day, tenant, key, model, got color')
})

test.each([
  ['budgets.0.tenant', { budgets: [{ tenant: 'team-a', tokens: 5 }] }],
  ['budgets.0.tenant', { budgets: [{ tenant: 'ip:10.0.0.1', tokens: 5 }] }],
  ['budgets.0.key', { budgets: [{ tenant: 'jwt:x', key: 'k', tokens: 5 }] }],
  ['budgets.0.cost', { budgets: [{ tenant: 'auth:a', cost: 5 }] }],
  ['prices.1.model', { prices: ['m', 'm'].map((model) => ({ model, input: 1, output: 1 })) }],
])('a setting that could never apply is an error: %s', async (field, usage) => {
  await expect(open(usage)).rejects.toThrow(`plugins.usage.${field}`)
})

describe('budgets', () => {
  test('a tenant whose budget is used up gets 429 with Retry-After until the period ends; others are served', async () => {
    const fleet = await open({ budgets: [{ tenant: 'auth:a', period: 'day', tokens: 30 }] })
    expect((await send(fleet, A)).status).toBe(200)
    expect((await send(fleet, A, { stream: true })).status).toBe(200)
    const worker = fleet.workers[0].requests.length
    const response = await fleet.post(CHAT, body, A)
    expect(response.status).toBe(429)
    const untilMidnight = 86_400 - (Math.floor(Date.now() / 1_000) % 86_400)
    expect(Math.abs(Number(response.headers.get('retry-after')) - untilMidnight)).toBeLessThan(5)
    expect(await response.json()).toMatchObject({
      error: { code: 'budget_exceeded', message: expect.stringContaining('the budget of 30 tokens per day') },
    })
    expect(fleet.workers[0].requests).toHaveLength(worker)
    expect((await send(fleet, B)).status).toBe(200)
  })

  test('a budget of cost for every tenant, and one of its own for one tenant', async () => {
    const fleet = await open({
      prices: [{ model: 'test-model', input: 0, output: 1_000_000 }],
      budgets: [
        { tenant: '*', cost: 6 },
        { tenant: 'auth:b', cost: 12 },
      ],
    })
    const statuses = async (headers: Record<string, string>) => {
      const seen: number[] = []
      for (let i = 0; i < 3; i++) seen.push((await send(fleet, headers)).status)
      return seen
    }
    expect(await statuses(A)).toEqual([200, 429, 429])
    expect(await statuses(B)).toEqual([200, 200, 429])
    const { budgets } = (await (await fleet.get('/usage/budgets', ADMIN)).json()) as { budgets: object[] }
    const common = {
      key: null,
      period: 'month',
      unit: 'cost',
      ends_at: expect.stringMatching(/-01T00:00:00/),
    }
    expect(budgets).toEqual([
      { tenant: 'auth:a', limit: 6, used: 6, left: 0, ...common },
      { tenant: 'auth:b', limit: 12, used: 12, left: 0, ...common },
    ])
    expect((await fleet.get('/usage/budgets', A)).status).toBe(401)
  })

  test('running requests hold their expected tokens; what they leave is free again', async () => {
    const fleet = await open({ budgets: [{ tenant: 'auth:a', tokens: 40 }] })
    const release = Promise.withResolvers<void>()
    fleet.workers[0].once(`POST ${CHAT}`, sseAnswer([PIECE, { until: release.promise }, ...STREAM.slice(1)]))
    const long = { stream: true, messages: [{ role: 'user', content: 'x'.repeat(200) }] }
    const running = send(fleet, A, long)
    await fleet.workers[0].received(`POST ${CHAT}`)
    const refused = await fleet.post(CHAT, body, A)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    release.resolve()
    await running
    expect((await send(fleet, A)).status).toBe(200)
  })

  test('requests start only as far as the budget covers all that may run, over all keys of the tenant', async () => {
    const keys = ['k1', 'k2'].map((id) => ({ id, tenant: 'a', key: id }))
    const fleet = await open(
      { budgets: [{ tenant: 'auth:a', tokens: 3_000 }] },
      { auth: { apiKey: 'admin-key', keys } },
    )
    const release = Promise.withResolvers<void>()
    fleet.workers[0].script(
      `POST ${CHAT}`,
      sseAnswer([PIECE, { until: release.promise }, ...STREAM.slice(1)]),
    )
    const start = (index: number, limits: object) =>
      fleet.post(CHAT, { ...body, stream: true, ...limits }, { authorization: `Bearer k${(index % 2) + 1}` })
    const statuses = async (count: number, limits: object) =>
      Promise.all(Array.from({ length: count }, (_, index) => start(index, limits)))
    const first = await statuses(40, { max_tokens: 400, n: 2 })
    const running = first.filter(({ status }) => status === 200)
    expect(running).toHaveLength(3)
    const refused = first.filter(({ status }) => status === 429)
    expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(Array(37).fill('1'))
    release.resolve()
    for (const response of running) await textUntilCut(response)
    // A request alone may start, although it might use more than what is left.
    const alone = await start(0, { max_completion_tokens: 9_000 })
    expect(alone.status).toBe(200)
    await textUntilCut(alone)
  })

  test('a budget of cost holds what running requests may cost', async () => {
    const fleet = await open({
      prices: [{ model: 'test-model', input: 0, output: 1_000_000 }],
      budgets: [{ tenant: '*', cost: 100 }],
    })
    const release = Promise.withResolvers<void>()
    fleet.workers[0].once(`POST ${CHAT}`, sseAnswer([PIECE, { until: release.promise }, ...STREAM.slice(1)]))
    const running = await fleet.post(CHAT, { ...body, stream: true, max_tokens: 60 }, A)
    expect((await send(fleet, A, { max_tokens: 60 })).status).toBe(429)
    expect((await send(fleet, A, { max_tokens: 30 })).status).toBe(200)
    expect((await send(fleet, B, { max_tokens: 60 })).status).toBe(200)
    release.resolve()
    await textUntilCut(running)
    expect((await send(fleet, A, { max_tokens: 60 })).status).toBe(200)
  })

  test('budgets outlive a restart', async () => {
    const usage = { budgets: [{ tenant: 'auth:a', tokens: 16 }] }
    const fleet = await open(usage)
    expect((await send(fleet, A)).status).toBe(200)
    await fleet.gateway.stop()
    expect((await send(await open(usage), A)).status).toBe(429)
  })
})
