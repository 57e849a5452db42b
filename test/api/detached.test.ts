/** Requests without a client: run, limited, counted and logged like others, and released completely when cancelled. */

import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Generations } from '#kernel'
import type { Detached, DetachedOutcome, Host, Identity, RequestContext } from '../../kernel/index.ts'
import { apiErrorFormat, definePlugin, Type } from '../../kernel/index.ts'
import { jsonAnswer, type Script } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const ROUTE = { method: 'POST', path: '/work' } as const
const TENANT: Identity = { tenant: 'auth:team', role: 'user' }

/** A plugin with the route that background work is counted under, and a function that starts such work. */
function worker(onDone: (ctx: RequestContext) => void = () => {}) {
  let host: Host | null = null
  const plugin = definePlugin({
    manifest: {
      name: 'night-shift',
      version: '0.1.0',
      description: 'test',
      uses: [Generations],
      config: Type.Object({}, { additionalProperties: false }),
    },
    register(own) {
      host = own
      own.route({
        ...ROUTE,
        access: 'api',
        errors: apiErrorFormat,
        endpoint: 'work',
        docs: { summary: 'work', tag: 'test', responses: {} },
        handler: (ctx) => ctx.json(200, {}),
      })
      own.hook('onDone', onDone)
    },
  })
  const begin = (run: (ctx: RequestContext, host: Host) => void | Promise<void>): Detached => {
    const own = host as unknown as Host
    return own.detached({ route: ROUTE, identity: TENANT, run: (ctx) => run(ctx, own) })
  }
  return { plugin, begin, host: () => host as unknown as Host }
}

const generateOnce = (ctx: RequestContext, host: Host) =>
  host.use(Generations).collect(ctx, {
    model: 'test-model',
    prompt: { kind: 'chat', messages: [{ role: 'user', content: 'hi' }] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: {},
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  })

const generate = async (ctx: RequestContext, host: Host) => {
  const answer = await generateOnce(ctx, host)
  ctx.json(200, { text: answer.choices[0].text })
}

const OK: Script = jsonAnswer({
  choices: [{ index: 0, message: { content: 'done' }, finish_reason: 'stop' }],
})

test('background work has an identity, is counted, runs hooks, and returns its response', async () => {
  const ended: RequestContext[] = []
  const { plugin, begin } = worker((ctx) => ended.push(ctx))
  const { workers, gateway } = await openFleet({ own: [plugin], plugins: {} })
  workers[0].script(CHAT, OK)
  const outcome = await begin(generate).done
  expect([outcome.status, JSON.parse(outcome.body.toString())]).toEqual([200, { text: 'done' }])
  expect(ended.map(({ identity, path, status }) => [identity?.tenant, path, status])).toEqual([
    ['auth:team', '/work', 200],
  ])
  const metrics = await (await fetch(gateway.metricsUrl as string)).text()
  expect(metrics).toContain('weir_http_requests_total{method="DETACHED",path="/work"} 1')
})

test('an error becomes the response, in the format of the route', async () => {
  const { plugin, begin } = worker()
  await openFleet({ own: [plugin], plugins: {}, workers: [{ models: ['other'] }] })
  const outcome = await begin(generate).done
  expect([outcome.status, outcome.errorCode]).toEqual([404, 'model_not_found'])
  expect(JSON.parse(outcome.body.toString())).toMatchObject({ error: { type: 'not_found_error' } })
})

test('limits apply: rejected work never starts', async () => {
  const { plugin, begin } = worker()
  const limits = { tenants: { default: { requestsPerMinute: 2 } } }
  const { workers } = await openFleet({ own: [plugin], plugins: { limits } })
  workers[0].script(CHAT, OK)
  const outcomes = await Promise.all([1, 2, 3].map(() => begin(generate).done))
  expect(outcomes.map(({ status }) => status).sort()).toEqual([200, 200, 429])
  expect(workers[0].requestsTo(CHAT)).toHaveLength(2)
})

test('work that continues a request whose key is gone never starts', async () => {
  const { plugin, host } = worker()
  const { workers } = await openFleet({ own: [plugin], plugins: {} })
  workers[0].script(CHAT, OK)
  const continued = { route: ROUTE, identity: TENANT, isContinuation: true }
  const work = host().detached({ ...continued, run: (ctx) => generate(ctx, host()) })
  const { status, errorCode } = await work.done
  expect([status, errorCode]).toEqual([401, 'invalid_api_key'])
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test('a tenant is charged for each generation of one request, which is admitted once', async () => {
  const { plugin, begin } = worker()
  const limits = { tenants: { default: { requestsPerMinute: 3 } }, maxConcurrentRequests: 1 }
  const { workers } = await openFleet({ own: [plugin], plugins: { limits } })
  workers[0].script(CHAT, OK)
  const outcome = await begin(async (ctx, host) => {
    for (let turn = 0; turn < 5; turn++) await generateOnce(ctx, host)
  }).done
  expect([outcome.status, outcome.errorCode]).toEqual([429, 'tenant_rate_limit_exceeded'])
  expect(workers[0].requestsTo(CHAT)).toHaveLength(3)
})

test('after a thousand concurrent runs, half of them cancelled, counters, permits, breakers and descriptors are as before', async () => {
  const { plugin, begin, host } = worker()
  const limits = { maxConcurrentRequests: 2_000, queueSize: 2_000 }
  const { workers, gateway } = await openFleet({
    own: [plugin],
    plugins: { limits },
    workers: [{}, {}],
  })
  for (const one of workers) one.script(CHAT, { ...(OK as object), delayMs: 30 } as Script)
  const warm = await begin(generate).done
  expect(warm.status).toBe(200)
  const descriptors = () => readdirSync('/proc/self/fd').length
  const before = descriptors()
  const begun = Array.from({ length: 1_000 }, () => begin(generate))
  begun.forEach((work, index) => {
    if (index % 2 === 0) setTimeout(() => work.cancel(), index % 40)
  })
  const outcomes: DetachedOutcome[] = await Promise.all(begun.map(({ done }) => done))
  const statuses = Map.groupBy(outcomes, ({ status }) => status)
  expect([...statuses.keys()].every((status) => status === 200 || status === 499)).toBe(true)
  expect(statuses.get(200)?.length).toBeGreaterThanOrEqual(500)
  const { balance } = host()
  await expect.poll(() => balance.workers.map(({ slot }) => balance.inFlight(slot))).toEqual([0, 0])
  expect(balance.workers.map(({ slot }) => balance.breakerState(slot))).toEqual(['closed', 'closed'])
  const metrics = await (await fetch(gateway.metricsUrl as string)).text()
  expect(/weir_http_connections_active (\d+)/.exec(metrics)?.[1]).toBe('0')
  // Kept connections to two workers, at most; every socket of a cancelled call is closed.
  await expect.poll(descriptors).toBeLessThanOrEqual(before + 130)
  expect((await begin(generate).done).status).toBe(200)
})
