/** The simulated engine with continuous batching, over real sockets: pace, prefix cache, load report, pairs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { defineValidator, type Logger } from '#kernel'
import { KernelConfigSchema } from '../../kernel/config/kernel-config.ts'
import { openListener } from '../../kernel/http/listener.ts'
import type { HttpServer } from '../../kernel/http/server.ts'
import { type SimConfig, simConfig } from '../../plugins/sim/config.ts'
import { Engine } from '../../plugins/sim/engine.ts'
import { simRoutes } from '../../plugins/sim/routes.ts'

const silent: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silent,
}
/** The parsed body of a response, untyped. */
async function json(reply: Response | Promise<Response>) {
  return JSON.parse(await (await reply).text())
}

const http = { ...defineValidator(KernelConfigSchema).parse({}).http, heartbeatMs: 0 }
const servers: HttpServer[] = []
const CLI = fileURLToPath(new URL('../../plugins/cli.ts', import.meta.url))

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A fast batched engine unless the test overrides it. */
async function openBatched(engineFields: object = {}, fields: Partial<SimConfig> = {}) {
  const fast = { prefillTokensPerSecond: 1_000_000, decodeBaseMs: 1, decodePerRunningMs: 0 }
  const given = { engine: { model: 'batched', ...fast, ...engineFields }, tokens: 4, ...fields }
  const engine = new Engine(defineValidator(simConfig).parse(given))
  const options = { host: '127.0.0.1', port: 0, routes: simRoutes(engine) }
  const { server, port } = await openListener(options, http, silent)
  servers.push(server)
  const url = `http://127.0.0.1:${port}`
  return {
    engine,
    read: async (path: string) => (await fetch(url + path)).text(),
    get: (path: string) => json(fetch(url + path)),
    post: (path: string, body: object | string, signal?: AbortSignal) =>
      fetch(url + path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        signal,
      }),
    /** Resolves when that many requests wait. */
    async untilWaiting(count: number) {
      while (engine.stats.load().waiting !== count) await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

const systemText = 'red '.repeat(200)
const chatOf = (question: string) => ({
  messages: [
    { role: 'system', content: systemText },
    { role: 'user', content: question },
  ],
})

async function eventsOf(reply: Response) {
  const lines = (await reply.text()).split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice(6)))
}

describe('cached tokens in the usage', () => {
  test('a second prompt with the same start is reported as cached, streamed or not', async () => {
    const { post } = await openBatched()
    const first = await json(post('/v1/chat/completions', chatOf('one')))
    expect(first.usage.prompt_tokens_details).toEqual({ cached_tokens: 0 })
    const second = await json(post('/v1/chat/completions', chatOf('two')))
    expect(second.usage.prompt_tokens_details).toEqual({ cached_tokens: 192 })
    expect(second.usage.completion_tokens).toBe(4)

    const streamed = { ...chatOf('six'), stream: true, stream_options: { include_usage: true } }
    const events = await eventsOf(await post('/v1/chat/completions', streamed))
    expect(events.at(-1).usage.prompt_tokens_details).toEqual({ cached_tokens: 192 })
    const text = events.map((event) => event.choices[0]?.delta?.content ?? '').join('')
    expect(text.split(' ')).toHaveLength(4)
  })

  test('the native format reports them in every event, and a flush clears them', async () => {
    const { post } = await openBatched()
    const native = { text: systemText, stream: true }
    await (await post('/generate', native)).text()
    const cached = async () =>
      (await eventsOf(await post('/generate', native))).map((event) => event.meta_info.cached_tokens)
    expect(await cached()).toEqual([192, 192, 192, 192])
    await (await post('/flush_cache', {})).text()
    expect((await cached())[0]).toBe(0)
  })

  test('an engine without batching reports none', async () => {
    const { post } = await openBatched({ model: 'paced' }, { ttftMs: 0, itlMs: 0 })
    const reply = await json(post('/v1/chat/completions', chatOf('one')))
    expect(reply.usage).not.toHaveProperty('prompt_tokens_details')
  })
})

describe('load reports', () => {
  test('running, waiting, usage, throughput and hit rate, as report and as gauges', async () => {
    const { post, get, read, untilWaiting } = await openBatched(
      { maxRunning: 1, decodeBaseMs: 50 },
      { tokens: 100 },
    )
    const leave = new AbortController()
    const replies = ['one', 'two'].map((question) =>
      post('/v1/chat/completions', { ...chatOf(question), stream: true }, leave.signal),
    )
    await untilWaiting(1)
    const { loads } = await get('/v1/loads')
    expect(loads[0]).toMatchObject({
      num_running_reqs: 1,
      num_waiting_reqs: 1,
      num_total_reqs: 2,
      max_total_num_tokens: 524_288,
    })
    expect(loads[0].num_used_tokens).toBeGreaterThan(300)
    expect(loads[0].token_usage).toBeCloseTo(loads[0].num_used_tokens / 524_288)
    const metrics = await read('/metrics')
    expect(metrics).toContain('sglang:num_running_reqs{model_name="sim-1"} 1\n')
    expect(metrics).toContain('sglang:num_queue_reqs{model_name="sim-1"} 1\n')
    expect((await get('/server_info')).internal_states[0]).toMatchObject({ running: 1, waiting: 1 })
    leave.abort()
    await Promise.allSettled(replies)
  })

  test('clients that disconnect release their place in queue and batch', async () => {
    const { engine, post, untilWaiting } = await openBatched(
      { maxRunning: 1, decodeBaseMs: 50 },
      { tokens: 1000 },
    )
    const leave = new AbortController()
    const left = ['one', 'two', 'three'].map((question) =>
      post('/v1/chat/completions', { ...chatOf(question), stream: true }, leave.signal).then((reply) =>
        reply.text(),
      ),
    )
    await untilWaiting(2)
    leave.abort()
    for (const { status } of await Promise.allSettled(left)) expect(status).toBe('rejected')
    const stayed = await post('/v1/chat/completions', { ...chatOf('four'), max_tokens: 2 })
    expect((await json(stayed)).usage.completion_tokens).toBe(2)
    expect(engine.stats.load()).toMatchObject({ running: 0, waiting: 0, usedTokens: 0 })
    expect(engine.stats.aborted).toBe(3)
  })
})

test('requests that can never run are rejected with the reason', async () => {
  const { post } = await openBatched({ kvTokens: 128 })
  const reply = await post('/v1/chat/completions', chatOf('one'))
  expect(reply.status).toBe(400)
  expect((await json(reply)).error.message).toContain('but the cache holds 128')
})

test('embeddings wait for their prefill only', async () => {
  const { post } = await openBatched()
  const reply = await json(post('/v1/embeddings', { input: systemText }))
  expect(reply.usage).toMatchObject({ prompt_tokens: 201, completion_tokens: 0 })
})

test('weir sim --count runs independent engines', async () => {
  const args = ['sim', '--timing', 'batched', '--count', '3', '--port', '0', '--tokens', '2']
  const child = spawn(process.execPath, ['--conditions=weir-source', CLI, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ports: number[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, port } = JSON.parse(line)
      if (msg === 'simulated engine listening') ports.push(port)
      if (ports.length === 3) break
    }
    child.stdout.resume()
    expect(new Set(ports).size).toBe(3)
    const body = JSON.stringify(chatOf('one'))
    await json(fetch(`http://127.0.0.1:${ports[1]}/v1/chat/completions`, { method: 'POST', body }))
    const stats = await Promise.all(ports.map((port) => json(fetch(`http://127.0.0.1:${port}/sim/stats`))))
    expect(stats.map(({ total, kv_idle_blocks }) => [total, kv_idle_blocks])).toEqual([
      [0, 0],
      [1, 12],
      [0, 0],
    ])
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
})

describe('pairs', () => {
  const room = '9007199254740993001'
  const withRoom = (value: string) =>
    `{"messages":[{"role":"user","content":"hi"}],"max_tokens":8,"bootstrap_host":"127.0.0.1","bootstrap_port":8998,"bootstrap_room":${value}}`

  test('a prefill engine generates one token and records every digit of the room', async () => {
    const { post, get } = await openBatched({}, { role: 'prefill' })
    const reply = await json(post('/v1/chat/completions', withRoom(room)))
    expect(reply.usage.completion_tokens).toBe(1)
    expect(reply.choices[0].finish_reason).toBe('length')
    expect((await get('/sim/requests')).requests[0].bootstrapRoom).toBe(room)
    expect((await get('/server_info')).disaggregation_mode).toBe('prefill')
  })

  test('a decode engine generates the full output; rooms of a batch are recorded unchanged', async () => {
    const { post, get } = await openBatched({}, { role: 'decode' })
    for (const value of [room, `[1, ${room}]`]) {
      const reply = await json(post('/v1/chat/completions', withRoom(value)))
      expect(reply.usage.completion_tokens).toBe(4)
    }
    const { requests } = await get('/sim/requests')
    expect(requests.map(({ bootstrapRoom }: { bootstrapRoom: string }) => bootstrapRoom)).toEqual([
      room,
      `[1, ${room}]`,
    ])
  })
})
