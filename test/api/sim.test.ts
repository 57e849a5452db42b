/** The simulated engine over real sockets: everything that a gateway and its tests rely on. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { SimConfig } from '../../plugins/sim/config.ts'
import type { Engine } from '../../plugins/sim/engine.ts'
import type { RequestRecord } from '../../plugins/sim/request-log.ts'
import { openSimulatedEngine } from '../support/simulated-engine.ts'
import { openSse } from '../support/sse-client.ts'

async function openEngine(fields: Partial<SimConfig> = {}): Promise<Client> {
  const { url, engine } = await openSimulatedEngine(fields)
  return new Client(url, engine)
}

class Client {
  readonly url: string
  readonly engine: Engine

  constructor(url: string, engine: Engine) {
    this.url = url
    this.engine = engine
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers })
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  }

  chat(fields: object = {}, headers: Record<string, string> = {}): Promise<Response> {
    return this.post('/v1/chat/completions', { ...hello, ...fields }, headers)
  }

  stream(fields: object = {}, headers: Record<string, string> = {}) {
    return openSse(`${this.url}/v1/chat/completions`, {
      body: { ...hello, stream: true, ...fields },
      headers,
    })
  }

  delete(path: string): Promise<Response> {
    return fetch(this.url + path, { method: 'DELETE' })
  }

  async requests(): Promise<(RequestRecord & { body: string })[]> {
    const reply = (await json(this.get('/sim/requests'))) as {
      requests: (RequestRecord & { body: string })[]
    }
    return reply.requests
  }

  /** Resolves when no request is running. */
  async idle(): Promise<void> {
    while (this.engine.stats.running > 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The parsed body of a response, untyped. */
async function json(reply: Response | Promise<Response>) {
  return JSON.parse(await (await reply).text())
}

const hello = { model: 'sim-1', messages: [{ role: 'user', content: 'Hello there.' }] }

const contentOf = (events: readonly { data: string }[]) =>
  events
    .filter((event) => event.data !== '[DONE]')
    .map((event) => JSON.parse(event.data).choices[0]?.delta.content ?? '')
    .join('')

describe('serving', () => {
  test('a chat has the same text streamed or not, and the stream ends with [DONE]', async () => {
    const client = await openEngine()
    const whole = await json(client.chat())
    const stream = client.stream()
    await stream.done
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(stream.isWhole).toBe(true)
    expect(stream.events.at(-1)?.data).toBe('[DONE]')
    expect(contentOf(stream.events)).toBe(whole.choices[0].message.content)
    expect(whole.usage).toEqual({ prompt_tokens: 5, completion_tokens: 64, total_tokens: 69 })
  })

  test('two engines with the same seed generate the same text', async () => {
    const [one, two] = [await openEngine(), await openEngine()]
    const text = async (client: Client) => (await json(client.chat())).choices[0].message.content
    expect(await text(one)).toBe(await text(two))
  })

  test('the other routes respond in their formats', async () => {
    const client = await openEngine()
    const post = (path: string, body: object) => json(client.post(path, body))
    expect(await post('/v1/completions', { prompt: 'Hi' })).toMatchObject({ object: 'text_completion' })
    expect(await post('/generate', { text: 'Hi' })).toMatchObject({ meta_info: { completion_tokens: 64 } })
    expect(await post('/v1/embeddings', { input: ['a', 'b'] })).toMatchObject({
      object: 'list',
      data: [{}, {}],
    })
    expect(await post('/v1/rerank', { query: 'b', documents: ['a', 'b'] })).toMatchObject([
      { index: 1, document: 'b' },
      { index: 0 },
    ])
    expect(await post('/v1/classify', { input: 'a' })).toMatchObject({ data: [{ num_classes: 2 }] })
  })

  test('an invalid body is a 400 with the field, an unknown path a 404, both in JSON', async () => {
    const client = await openEngine()
    const bad = await client.post('/v1/chat/completions', { messages: 'no' })
    expect(bad.status).toBe(400)
    expect((await json(bad)).error).toMatchObject({ type: 'invalid_request_error', param: 'messages' })
    // All choices are created before the first is sent.
    expect((await client.chat({ n: 128 })).status).toBe(200)
    const many = await client.chat({ n: 129 })
    expect([many.status, (await json(many)).error.param]).toEqual([400, 'n'])
    const unknown = await client.get('/v1/unknown')
    expect(unknown.status).toBe(404)
    expect((await json(unknown)).error.message).toBeTypeOf('string')
  })

  test('with a key, all routes except /health and /metrics require it', async () => {
    const client = await openEngine({ apiKey: 'k-1' })
    const refused = await client.chat()
    expect(refused.status).toBe(401)
    expect((await json(refused)).error.type).toBe('authentication_error')
    expect((await client.get('/sim/requests')).status).toBe(401)
    expect((await client.chat({}, { authorization: 'Bearer k-2' })).status).toBe(401)
    expect((await client.chat({}, { authorization: 'Bearer k-1' })).status).toBe(200)
    expect((await client.get('/health')).status).toBe(200)
    expect((await client.get('/metrics')).status).toBe(200)
  })

  test('a stream keeps its interval', async () => {
    const client = await openEngine({ ttftMs: 60, itlMs: 20, tokens: 5 })
    const stream = client.stream()
    await stream.done
    expect(stream.timeToFirstEventMs).toBeGreaterThanOrEqual(58)
    const last = stream.events.at(-1)?.atMs ?? 0
    expect(last).toBeGreaterThanOrEqual(60 + 4 * 20 - 2)
  })

  test('a non-streamed response waits for ttft and all of its tokens', async () => {
    const client = await openEngine({ ttftMs: 40, itlMs: 10, tokens: 5 })
    const startedAtMs = performance.now()
    await json(client.chat())
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(88)
  })

  test('tens of megabytes reach a slow reader completely', async () => {
    const client = await openEngine({ maxModelLen: 10_000_000 })
    const fields = { max_tokens: 150_000, ignore_eos: true }
    const slow = client.stream(fields)
    for (let round = 0; round < 5; round += 1) {
      await slow.receive(round * 1000 + 1)
      slow.pause()
      await new Promise((resolve) => setTimeout(resolve, 20))
      slow.resume()
    }
    await slow.done
    expect(slow.isWhole).toBe(true)
    expect(slow.bodyLength).toBeGreaterThan(20_000_000)
    expect(slow.events).toHaveLength(150_000 + 3)
    const whole = await json(client.chat(fields))
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    expect(hash(contentOf(slow.events))).toBe(hash(whole.choices[0].message.content))
  })

  test('a client that disconnects stops the generation, and is counted', async () => {
    const client = await openEngine({ ttftMs: 0, itlMs: 20, tokens: 1000 })
    const stream = client.stream()
    await stream.receive(3)
    expect(client.engine.stats.running).toBe(1)
    stream.close()
    await client.idle()
    const { aborted, generatedTokens, usedTokens } = client.engine.stats
    expect(aborted).toBe(1)
    expect(generatedTokens).toBeLessThan(900)
    expect(usedTokens).toBe(0)
    expect(await client.requests()).toMatchObject([{ outcome: 'aborted', finishedAtMs: null }])
  })
})

describe('discovery', () => {
  test('sglang has server info, model info and loads, but no version', async () => {
    const client = await openEngine()
    for (const path of ['/server_info', '/get_server_info', '/model_info', '/get_model_info', '/v1/loads']) {
      expect((await client.get(path)).status).toBe(200)
    }
    expect((await client.get('/version')).status).toBe(404)
    expect(await json(client.get('/v1/models'))).toMatchObject({
      data: [{ id: 'sim-1', owned_by: 'sglang', max_model_len: 32_768 }],
    })
    expect((await client.get('/health_generate')).status).toBe(200)
    expect((await client.post('/flush_cache', {})).status).toBe(200)
  })

  test('vllm has only a version and metrics, and rejects unknown models', async () => {
    const client = await openEngine({ runtime: 'vllm' })
    expect(await json(client.get('/version'))).toHaveProperty('version')
    expect((await client.get('/server_info')).status).toBe(404)
    expect((await client.get('/v1/loads')).status).toBe(404)
    expect(await (await client.get('/metrics')).text()).toContain('vllm:num_requests_running')
    expect((await client.chat({ model: 'other' })).status).toBe(404)
  })

  test('the load report includes a running request', async () => {
    const client = await openEngine({ itlMs: 50, tokens: 1000 })
    const stream = client.stream()
    await stream.receive(2)
    const { loads } = await json(client.get('/v1/loads?include=core'))
    expect(loads[0]).toMatchObject({ dp_rank: 0, num_running_reqs: 1, num_total_reqs: 1 })
    expect(loads[0].num_used_tokens).toBeGreaterThanOrEqual(6)
    stream.close()
  })
})

describe('faults', () => {
  test('by header: status and retry-after', async () => {
    const client = await openEngine()
    const reply = await client.chat({}, { 'x-sim-fault': 'status=429;retry-after=2' })
    expect(reply.status).toBe(429)
    expect(reply.headers.get('retry-after')).toBe('2')
    expect((await json(reply)).error.code).toBe('simulated_fault')
  })

  test('by body field, which gateways pass on', async () => {
    const client = await openEngine()
    expect((await client.chat({ sim_fault: 'status=503' })).status).toBe(503)
    expect((await client.chat({ sim_fault: 'nonsense' })).status).toBe(400)
  })

  test('by rule: applied to the next matching requests only', async () => {
    const client = await openEngine()
    const rule = { fault: 'status=500', count: 2, match: { path: '/v1/chat/completions' } }
    expect((await client.post('/sim/faults', rule)).status).toBe(200)
    expect((await client.post('/generate', { text: 'a' })).status).toBe(200)
    const statuses = [
      (await client.chat()).status,
      (await client.chat()).status,
      (await client.chat()).status,
    ]
    expect(statuses).toEqual([500, 500, 200])
    await client.post('/sim/faults', { fault: 'hang', count: 9 })
    expect(await json(client.delete('/sim/faults'))).toEqual({ faults: [] })
    expect((await client.chat()).status).toBe(200)
    expect((await client.post('/sim/faults', { fault: 'explode' })).status).toBe(400)
  })

  test('by rule for a probe', async () => {
    const client = await openEngine()
    await client.post('/sim/faults', { fault: 'status=503', match: { path: '/health' } })
    expect((await client.get('/health')).status).toBe(503)
    expect((await client.get('/health')).status).toBe(200)
  })

  test('delay precedes everything else', async () => {
    const client = await openEngine()
    const startedAtMs = performance.now()
    expect((await client.chat({ sim_fault: 'delay=80,status=500' })).status).toBe(500)
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(78)
  })

  test('drop closes the connection without a response', async () => {
    const client = await openEngine()
    await expect(client.chat({ sim_fault: 'drop' })).rejects.toThrow()
    expect(await client.requests()).toMatchObject([{ outcome: 'dropped' }])
    expect(client.engine.stats).toMatchObject({ running: 0, aborted: 1 })
  })

  test('drop-after closes it in mid-stream, after that many events', async () => {
    const client = await openEngine()
    const stream = client.stream({ sim_fault: 'drop-after=3' })
    await stream.done
    expect(stream.events).toHaveLength(3)
    expect(stream.isWhole).toBe(false)
  })

  test('hang never responds, hang-after falls silent; both end when the client disconnects', async () => {
    const client = await openEngine()
    const impatient = new AbortController()
    const hanging = fetch(`${client.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...hello, sim_fault: 'hang' }),
      signal: impatient.signal,
    })
    const stream = client.stream({ sim_fault: 'hang-after=3' })
    await stream.receive(3)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(stream.events).toHaveLength(3)
    expect(client.engine.stats.running).toBe(2)
    stream.close()
    impatient.abort()
    await expect(hanging).rejects.toThrow()
    await client.idle()
    expect(client.engine.stats.aborted).toBe(2)
  })

  test('drip splits the first events into single bytes, with the same text', async () => {
    const client = await openEngine({ tokens: 4 })
    const dripping = client.stream({ sim_fault: 'drip=2' })
    const plain = client.stream()
    await Promise.all([dripping.done, plain.done])
    expect(dripping.splitReads).toBeGreaterThan(20)
    expect(contentOf(dripping.events)).toBe(contentOf(plain.events))
  })

  test('malformed breaks the JSON of responses, streamed or not', async () => {
    const client = await openEngine({ tokens: 4 })
    const whole = await client.chat({ sim_fault: 'malformed' })
    expect(whole.status).toBe(200)
    await expect(json(whole)).rejects.toThrow()
    const stream = client.stream({ sim_fault: 'malformed' })
    await stream.done
    expect(() => JSON.parse(stream.events[1].data)).toThrow()
    expect(stream.events.at(-1)?.data).toBe('[DONE]')
  })
})

describe('scripts and records', () => {
  test('a scripted text, then a scripted body, then generated text', async () => {
    const client = await openEngine()
    await client.post('/sim/answers', { text: 'As scripted.' })
    await client.post('/sim/answers', { body: { odd: true } })
    expect((await json(client.chat())).choices[0].message.content).toBe('As scripted.')
    expect(await json(client.chat())).toEqual({ odd: true })
    expect((await json(client.chat())).usage.completion_tokens).toBe(64)
  })

  test('a scripted array is one event per member', async () => {
    const client = await openEngine()
    await client.post('/sim/answers', { body: [{ n: 1 }, { n: 2 }] })
    const stream = client.stream()
    await stream.done
    expect(stream.events.map((event) => event.data)).toEqual(['{"n":1}', '{"n":2}', '[DONE]'])
  })

  test('requests are recorded unchanged, with the hash of their body', async () => {
    const client = await openEngine()
    const headers = {
      'x-custom': 'yes',
      traceparent: '00-a-b-01',
      authorization: 'Bearer secret',
      'x-other': 'no',
    }
    await (await client.chat({}, headers)).text()
    const body = JSON.stringify(hello)
    expect(await client.requests()).toMatchObject([
      {
        method: 'POST',
        path: '/v1/chat/completions',
        bodyBytes: body.length,
        bodySha256: createHash('sha256').update(body).digest('hex'),
        body,
        outcome: 'completed',
        abortedAtMs: null,
        headers: { 'x-custom': 'yes', traceparent: '00-a-b-01', authorization: 'Bearer secret' },
      },
    ])
    expect((await client.requests())[0].headers).not.toHaveProperty('x-other')
    await client.delete('/sim/requests')
    expect(await client.requests()).toEqual([])
  })

  test('the last 1,000 requests are kept, and none if recording is off', async () => {
    const client = await openEngine()
    for (let sent = 0; sent < 1005; sent += 1) await (await client.get('/health')).text()
    const kept = await client.requests()
    expect(kept).toHaveLength(1000)
    expect(kept[0].number).toBe(5)
    const silentClient = await openEngine({ record: false })
    await (await silentClient.chat()).text()
    expect(await silentClient.requests()).toEqual([])
    expect(await json(silentClient.get('/sim/stats'))).toEqual({
      running: 0,
      total: 1,
      aborted: 0,
      prompt_tokens: 5,
      generated_tokens: 64,
    })
  })
})

describe('fixed replies', () => {
  test('by header or setting, the same bytes are sent for any prompt', async () => {
    const client = await openEngine()
    const fixed = { 'x-sim-fixed': '1' }
    const first = await (await client.chat({}, fixed)).text()
    const second = await (await client.chat({ messages: 'not even a prompt' }, fixed)).text()
    expect(second).toBe(first)
    expect(JSON.parse(first)).toMatchObject({ object: 'chat.completion', model: 'sim-1' })
    const always = await openEngine({ fixedResponse: true })
    const stream = always.stream({ model: 'other' })
    await stream.done
    expect(JSON.parse(stream.events[0].data)).toMatchObject({ model: 'other' })
    expect(stream.events.at(-1)?.data).toBe('[DONE]')
  })

  test('faults still apply', async () => {
    const client = await openEngine({ fixedResponse: true })
    expect((await client.chat({}, { 'x-sim-fault': 'status=500' })).status).toBe(500)
  })
})
