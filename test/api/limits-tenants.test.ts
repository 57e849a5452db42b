/** Tenant limits over a real gateway: how tenants are identified, and what is settled after the response. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { apiErrorFormat } from '#kernel'
import { plugin } from '../support/hooked-gateway.ts'
import { dropAnswer, jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const BODY = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
const KEYS = { apiKey: 'admin-key', tenantKeys: ['a:key-a', 'b:key-b'] }
const ADMIN = { authorization: 'Bearer admin-key' }
const A = { authorization: 'Bearer key-a' }
const B = { authorization: 'Bearer key-b' }
/** The gateway's estimate for the body. */
const PROMPT_TOKENS = Math.ceil(JSON.stringify(BODY).length / 4)

// Buckets refill by this clock, so it is stopped to keep counts exact on a loaded machine.
beforeEach(() => {
  vi.spyOn(process.hrtime, 'bigint').mockReturnValue(process.hrtime.bigint())
})
afterEach(() => {
  vi.restoreAllMocks()
})

const usage = (prompt_tokens: number, completion_tokens: number) => ({
  usage: { prompt_tokens, completion_tokens },
})

async function open(
  tenants: object,
  script: Script = jsonAnswer(usage(5, 5)),
  auth: object = KEYS,
  more: object = {},
): Promise<Fleet> {
  const fleet = await openFleet({
    kernel: { retry: { maxAttempts: 1 } },
    plugins: { auth, limits: { tenants }, ...more },
  })
  fleet.workers[0].script(CHAT, script)
  return fleet
}

const chat = (fleet: Fleet, headers?: Record<string, string>, body: unknown = BODY) =>
  fleet.post('/v1/chat/completions', body, headers)

/** What a tenant has left, in the order of its limits. */
async function left(fleet: Fleet, tenant: string): Promise<number[]> {
  const reply = await fleet.get(`/limits?tenant=${encodeURIComponent(tenant)}`, ADMIN)
  const { use } = (await reply.json()) as { use: { tenant: { left: number }[] } }
  return use.tenant.map((bucket) => bucket.left)
}

async function statuses(fleet: Fleet, each: readonly Record<string, string>[]): Promise<number[]> {
  const seen: number[] = []
  for (const headers of each) seen.push((await chat(fleet, headers)).status)
  return seen
}

describe('running requests', () => {
  const running = async (fleet: Fleet) => {
    const reply = await fleet.get('/limits?tenant=auth:a', ADMIN)
    return ((await reply.json()) as { use: { tenantRunning: number } }).use.tenantRunning
  }

  test('one more than the limit gets 429, another tenant is served, and one that ends makes room', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const fleet = await open(
      { default: { maxConcurrentRequests: 2 } },
      sseAnswer(['{}', { until: promise }, '[DONE]']),
    )
    const stream = (headers: Record<string, string>) =>
      openSse(`${fleet.gateway.url}/v1/chat/completions`, { body: { ...BODY, stream: true }, headers })
    const streams = [stream(A), stream(A), stream(B)]
    await Promise.all(streams.map((one) => one.receive(1)))
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200])
    const refused = await chat(fleet, A)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await refused.json()).toMatchObject({
      error: {
        type: 'rate_limit_error',
        code: 'tenant_concurrency_exceeded',
        message: expect.stringContaining('2 running requests of this tenant'),
      },
    })
    expect(await running(fleet)).toBe(2)
    resolve()
    await Promise.all(streams.map((one) => one.done))
    await vi.waitFor(async () => expect(await running(fleet)).toBe(0))
    expect((await chat(fleet, A)).status).toBe(200)
  })
})

describe('requests a minute', () => {
  test('the 61st request gets 429 with Retry-After, another tenant is served', async () => {
    const fleet = await open({ default: { requestsPerMinute: 60 } })
    const replies = await Promise.all(Array.from({ length: 60 }, () => chat(fleet, A)))
    expect(replies.every(({ status }) => status === 200)).toBe(true)
    const refused = await chat(fleet, A)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(refused.headers.get('x-weir-error-code')).toBe('tenant_rate_limit_exceeded')
    expect(await refused.json()).toMatchObject({
      error: { type: 'rate_limit_error', code: 'tenant_rate_limit_exceeded' },
    })
    expect((await chat(fleet, B)).status).toBe(200)
    expect(fleet.workers[0].requestsTo(CHAT)).toHaveLength(61)
  })

  test('an override replaces the default limits of a tenant', async () => {
    const fleet = await open({
      default: { requestsPerMinute: 1 },
      overrides: [{ tenant: 'auth:b', requestsPerMinute: 2 }],
    })
    expect(await statuses(fleet, [A, A, B, B, B])).toEqual([200, 429, 200, 200, 429])
  })

  test('a rule limits the models that it matches', async () => {
    const modelRules = [{ ruleId: 'tests', match: 'prefix', model: 'test-', requestsPerMinute: 1 }]
    const fleet = await open({ default: { modelRules } })
    expect((await chat(fleet, A)).status).toBe(200)
    const refused = await chat(fleet, A)
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('rule tests')
    // Another model is not limited; no worker serves it.
    expect((await chat(fleet, A, { ...BODY, model: 'other' })).status).toBe(404)
  })

  test.each<[string, string, object]>([
    ['an alias', '/v1/chat/completions', { model: 'short' }],
    ['the word for any model', '/v1/chat/completions', { model: 'unknown' }],
    ['an empty name', '/v1/chat/completions', { model: '' }],
    ['none', '/v1/chat/completions', { model: undefined }],
    ['null', '/v1/completions', { model: null, prompt: 'a' }],
    ['a virtual model in Messages', '/v1/messages', { model: 'claude-x', max_tokens: 1 }],
    ['such a name to count by', '/v1/messages/count_tokens', { model: 'claude-x' }],
  ])('%s does not walk round the rule of the model', async (_what, path, named) => {
    const modelRules = [{ ruleId: 'tests', match: 'exact', model: 'test-model', requestsPerMinute: 1 }]
    const fleet = await openFleet({
      workers: [{ spec: { models: [{ id: 'test-model', aliases: ['short'] }] } }],
      plugins: {
        auth: KEYS,
        limits: { tenants: { default: { modelRules } } },
        messages: {},
        'virtual-models': { models: { 'claude-*': { targets: [{ model: 'test-model' }] } } },
      },
    })
    fleet.workers[0].script(CHAT, jsonAnswer(usage(5, 5)))
    expect((await chat(fleet, A)).status).toBe(200)
    const refused = await fleet.post(path, { ...BODY, ...named }, A)
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('rule tests')
  })

  test('nor does a request without a model if a worker serves any', async () => {
    const modelRules = [{ ruleId: 'tests', match: 'exact', model: 'test-model', requestsPerMinute: 1 }]
    const fleet = await openFleet({
      workers: [{ spec: { models: [] } }],
      plugins: { auth: KEYS, limits: { tenants: { default: { modelRules } } } },
    })
    fleet.workers[0].script(CHAT, jsonAnswer(usage(5, 5)))
    expect((await chat(fleet, A)).status).toBe(200)
    const refused = await chat(fleet, A, { ...BODY, model: undefined })
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('rule tests')
  })

  test('a request without a model in its body is not limited by model rules', async () => {
    const modelRules = [{ ruleId: 'all', match: 'prefix', model: 'test', requestsPerMinute: 1 }]
    const cancels = plugin('cancels', (host) => {
      host.route({
        method: 'POST',
        path: '/cancel',
        access: 'api',
        errors: apiErrorFormat,
        handler: (ctx) => ctx.json(200, {}),
        docs: { summary: 'takes no body', tag: 'test', responses: {} },
      })
    })
    const fleet = await openFleet({
      own: [cancels],
      plugins: { limits: { tenants: { default: { requestsPerMinute: 2, modelRules } } } },
    })
    expect((await fleet.post('/cancel', '')).status).toBe(200)
    expect((await fleet.post('/cancel', 'no JSON')).status).toBe(200)
    expect((await fleet.post('/cancel', '')).status).toBe(429)
  })

  test('a request that the queue rejects is not charged to its tenant', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const fleet = await openFleet({
      plugins: {
        auth: KEYS,
        limits: { maxConcurrentRequests: 1, queueSize: 0, tenants: { default: { requestsPerMinute: 10 } } },
      },
    })
    fleet.workers[0].script(CHAT, () => promise.then(() => jsonAnswer({})))
    const running = chat(fleet, A)
    await fleet.workers[0].received(CHAT)
    expect((await chat(fleet, A)).status).toBe(429)
    expect(await left(fleet, 'auth:a')).toEqual([9])
    resolve()
    expect((await running).status).toBe(200)
  })
})

describe('the tenant of a request', () => {
  test('the address of a client without a key', async () => {
    const fleet = await open({ default: { requestsPerMinute: 1 } }, undefined, {})
    expect(await statuses(fleet, [{}, { 'x-weir-tenant-id': 'other' }])).toEqual([200, 429])
    expect(await left(fleet, 'ip:127.0.0.1')).toEqual([0])
  })

  test('an address in any of its forms', async () => {
    const overrides = [{ tenant: 'ip:::ffff:127.0.0.1', requestsPerMinute: 2 }]
    const fleet = await open({ default: { requestsPerMinute: 1 }, overrides }, undefined, {})
    expect(await statuses(fleet, [{}, {}, {}])).toEqual([200, 200, 429])
    expect(await left(fleet, 'ip:0:0:0:0:0:ffff:7f00:1')).toEqual([0])
  })

  test('the /64 network of an IPv6 address', async () => {
    const fleet = await open(
      { default: { requestsPerMinute: 1 } },
      undefined,
      {},
      {
        'trusted-proxies': { addresses: ['127.0.0.1'] },
      },
    )
    const from = (address: string) => ({ 'x-forwarded-for': address })
    const requests = [
      '2001:db8:0:1::1',
      '2001:db8:0:1:ffff::2',
      '2001:db8:0:2::1',
      '2001:db8::1',
      '::2',
      '::1',
    ]
    expect(await statuses(fleet, requests.map(from))).toEqual([200, 429, 200, 200, 200, 429])
    expect(await left(fleet, 'ip:2001:db8:0:1:2:3:4:5')).toEqual([0])
    expect(await left(fleet, 'ip:2001:db8:0:1::/64')).toEqual([0])
  })

  test('the tenant header, if trusted', async () => {
    const fleet = await open({ default: { requestsPerMinute: 1 }, trustTenantHeader: true }, undefined, {})
    const named = (name: string) => ({ 'x-weir-tenant-id': name })
    expect(await statuses(fleet, [named('x'), named('y'), named('x'), {}])).toEqual([200, 200, 429, 200])
    expect(await left(fleet, 'header:x')).toEqual([0])
  })

  test('the key takes precedence over the header', async () => {
    const fleet = await open({ default: { requestsPerMinute: 1 }, trustTenantHeader: true })
    expect(await statuses(fleet, [{ ...A, 'x-weir-tenant-id': 'x' }, A])).toEqual([200, 429])
  })
})

describe('tokens are settled after the response', () => {
  test('with its usage', async () => {
    const fleet = await open({ default: { tokensPerMinute: 1_000 } }, jsonAnswer(usage(30, 70)))
    await chat(fleet, A)
    expect(await left(fleet, 'auth:a')).toEqual([900])
  })

  test('with the usage in the last event of a stream', async () => {
    const events = ['{"choices":[]}', JSON.stringify(usage(30, 170)), '[DONE]']
    const fleet = await open({ default: { tokensPerMinute: 1_000 } }, sseAnswer(events))
    const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
      headers: A,
      body: { ...BODY, stream: true },
    })
    await stream.done
    expect(stream.events.map(({ data }) => data)).toEqual(events)
    expect(await left(fleet, 'auth:a')).toEqual([800])
  })

  test('with one token per event with output if the stream has no usage', async () => {
    const piece = '{"choices":[{"index":0,"delta":{"content":"a"}}]}'
    const answer = sseAnswer([piece, piece, piece, '[DONE]'])
    const fleet = await open({ default: { tokensPerMinute: 1_000 } }, answer)
    expect((await chat(fleet, A)).status).toBe(200)
    expect(await left(fleet, 'auth:a')).toEqual([1_000 - PROMPT_TOKENS - 3])
  })

  test('with one token per four bytes if the events of a stream are unknown', async () => {
    const fleet = await open({ default: { tokensPerMinute: 1_000 } }, sseAnswer(['1', '2', '3', '[DONE]']))
    const text = await (await chat(fleet, A)).text()
    expect(await left(fleet, 'auth:a')).toEqual([1_000 - PROMPT_TOKENS - Math.ceil(text.length / 4)])
  })

  test('below zero after a long response, so that the next request is rejected', async () => {
    const fleet = await open({ default: { tokensPerMinute: 600 } }, jsonAnswer(usage(30, 870)))
    expect((await chat(fleet, A)).status).toBe(200)
    expect(await left(fleet, 'auth:a')).toEqual([-300])
    const refused = await chat(fleet, A)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(29)
  })

  test('with zero if the worker failed', async () => {
    const fleet = await open({ default: { tokensPerMinute: 1_000 } }, dropAnswer())
    expect((await chat(fleet, A)).status).toBeGreaterThanOrEqual(500)
    expect(await left(fleet, 'auth:a')).toEqual([1_000])
  })

  test('a prompt larger than the bucket is rejected with advice not to retry', async () => {
    const fleet = await open({ default: { tokensPerMinute: 5 } })
    const refused = await chat(fleet, A)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(await refused.text()).toContain('send a smaller request')
    expect(fleet.workers[0].requestsTo(CHAT)).toEqual([])
  })
})
