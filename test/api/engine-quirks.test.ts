/** What clients get of simulated engines that differ from their formats, as their real ones do. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SimConfig } from '../../plugins/sim/config.ts'
import type { Engine } from '../../plugins/sim/engine.ts'
import { serveInProcess } from '../../plugins/testing/serve-in-process.ts'
import { startGateway } from '../support/gateway.ts'
import { jsonAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { openSimulatedEngine } from '../support/simulated-engine.ts'

const CHAT = '/v1/chat/completions'
const user = { role: 'user', content: 'Say hello.' }
const IMAGE = {
  role: 'user',
  content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }],
}

interface Setup {
  readonly engine: Engine
  readonly url: string
  post(path: string, body: object): Promise<Response>
}

async function open(runtime: SimConfig['runtime'], fields: Partial<SimConfig> = {}): Promise<Setup> {
  const { url: worker, engine } = await openSimulatedEngine({ runtime, models: ['m'], tokens: 12, ...fields })
  const gateway = await startGateway({
    plugins: {
      auth: {},
      health: {},
      chat: {},
      messages: {},
      responses: {},
      policies: {},
      // MLX has no owner to be recognized by.
      workers: { workers: [{ url: worker, ...(runtime === 'mlx' && { runtime_type: 'mlx' }) }] },
    },
  })
  onTestFinished(() => gateway.stop())
  await vi.waitFor(async () => expect((await fetch(`${gateway.url}/readiness`)).status).toBe(200), 30_000)
  return {
    engine,
    url: gateway.url,
    post: (path, body) =>
      fetch(gateway.url + path, { method: 'POST', body: JSON.stringify({ model: 'm', ...body }) }),
  }
}

interface Answer {
  readonly choices: readonly {
    readonly message?: { readonly content: string }
    readonly text?: string
    readonly finish_reason: string
  }[]
}

async function answerOf(response: Response): Promise<Answer> {
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

async function textOf(response: Response): Promise<string> {
  const { choices } = await answerOf(response)
  return choices[0].message?.content ?? choices[0].text ?? ''
}

const eventsOf = async (response: Response) =>
  [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => data)

async function streamedText(response: Response): Promise<string> {
  const chunks = (await eventsOf(response))
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data))
  return chunks.map(({ choices }) => choices[0]?.delta?.content ?? choices[0]?.text ?? '').join('')
}

describe.each(['mlx', 'transformers'] as const)('stop strings of %s', (runtime) => {
  const say = (engine: Engine) => engine.answers.add({ text: 'One two three four', count: 1, match: {} })

  test.each([CHAT, '/v1/completions'])('%s: end the answer before them, whole and streamed', async (path) => {
    const { engine, post } = await open(runtime)
    const body = { messages: [user], prompt: 'Count.', stop: [' three'] }
    const { messages, prompt, ...rest } = body
    const sent = path === CHAT ? { messages, ...rest } : { prompt, ...rest }
    say(engine)
    const whole = await answerOf(await post(path, sent))
    expect(whole.choices[0].message?.content ?? whole.choices[0].text).toBe('One two')
    expect(whole.choices[0].finish_reason).toBe('stop')
    say(engine)
    expect(await streamedText(await post(path, { ...sent, stream: true }))).toBe('One two')
  })

  test('the usage of an answer that ends there is estimated, and marked', async () => {
    const { engine, post } = await open(runtime)
    const body = { messages: [user], stop: [' three'] }
    const expected = { completion_tokens: 2, estimated: true }
    say(engine)
    expect(await (await post(CHAT, body)).json()).toMatchObject({ usage: expected })
    say(engine)
    const streamed = await post(CHAT, { ...body, stream: true, stream_options: { include_usage: true } })
    const last = (await eventsOf(streamed)).at(-2) ?? ''
    expect(JSON.parse(last)).toMatchObject({ choices: [], usage: expected })
    say(engine)
    const input = { input: 'hi', max_output_tokens: 9 }
    const plain = await (await post('/v1/responses', input)).json()
    expect((plain as { usage: object }).usage).not.toHaveProperty('estimated')
  })

  test('without one the bytes are passed on', async () => {
    const { engine, post } = await open(runtime)
    say(engine)
    expect(await textOf(await post(CHAT, { messages: [user] }))).toBe('One two three four')
  })
})

describe('llama.cpp', () => {
  test.each([
    ['a whole answer', {}, textOf],
    ['a stream', { stream: true }, streamedText],
  ])('%s that continues an assistant message does not repeat it', async (_kind, more, read) => {
    const { engine, post } = await open('llamacpp')
    engine.answers.add({ text: ' three', count: 1, match: {} })
    const messages = [user, { role: 'assistant', content: 'One two' }]
    expect(await read(await post(CHAT, { messages, ...more }))).toBe(' three')
  })

  test('an image is the mistake of the client, and no failure', async () => {
    const { post } = await open('llamacpp')
    expect((await post(CHAT, { messages: [IMAGE] })).status).toBe(400)
    expect((await post(CHAT, { messages: [user], max_tokens: 0 })).status).toBe(200)
  })

  test.each([
    ['chat', CHAT, {}],
    ['a continued chat', CHAT, { messages: [user, { role: 'assistant', content: 'One' }] }],
    ['Responses', '/v1/responses', { input: 'hi', messages: undefined, store: false }],
  ])('tools that the template does not show to the model are warned of: %s', async (_kind, path, more) => {
    const { post } = await open('llamacpp')
    const tool = { name: 'f', description: 'F', parameters: { type: 'object', properties: {} } }
    const tools = [path === CHAT ? { type: 'function', function: tool } : { type: 'function', ...tool }]
    const response = await post(path, { messages: [user], tools, ...more })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-weir-warning')).toContain('members_ignored; count=1; names="tools"')
    const plain = await post(path, { messages: [user], ...more })
    expect(plain.headers.get('x-weir-warning')).toBeNull()
  })

  test('requests that fill the shared context together are repeated one after the other', async () => {
    const { engine, post } = await open('llamacpp', { maxModelLen: 40, ttftMs: 50, tokens: 4 })
    const messages = [{ role: 'user', content: 'word '.repeat(18) }]
    const responses = await Promise.all([1, 2, 3].map(() => post(CHAT, { messages })))
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(engine.stats.total).toBeGreaterThan(3)
    expect(engine.stats.total).toBeLessThanOrEqual(9)
  })
})

describe('routes that an engine lacks', () => {
  test('are not among its formats: embeddings are rejected, the native format is translated', async () => {
    const { url, post } = await open('llamacpp')
    const shown = (await (await fetch(`${url}/workers`)).json()) as { workers: { apis: string[] }[] }
    expect(shown.workers[0].apis).toEqual(['chat', 'completions'])
    const refused = await post('/v1/embeddings', { input: 'hi' })
    expect([refused.status, refused.headers.get('x-weir-error-code')]).toEqual([
      501,
      'embeddings_unsupported',
    ])
    const generated = await post('/generate', { text: 'hi', sampling_params: { max_new_tokens: 3 } })
    expect([generated.status, await generated.json()]).toMatchObject([200, [{ text: expect.any(String) }]])
  })

  test('of two engines of one model the one that has the route gets its requests', async () => {
    const [chat, all] = await Promise.all([
      startScriptedWorker({ shape: 'vllm', models: ['m'], lacks: ['/v1/embeddings', '/v1/rerank'] }),
      startScriptedWorker({ shape: 'vllm', models: ['m'] }),
    ])
    const list = { object: 'list', data: [], usage: { prompt_tokens: 1, total_tokens: 1 } }
    all.script('POST /v1/embeddings', jsonAnswer(list)).script('POST /v1/rerank', jsonAnswer({ results: [] }))
    const workers = { urls: [chat.url, all.url] }
    const gateway = await startGateway({ plugins: { auth: {}, health: {}, chat: {}, policies: {}, workers } })
    onTestFinished(async () => {
      await gateway.stop()
      await Promise.all([chat.close(), all.close()])
    })
    const isReady = async () => expect((await fetch(`${gateway.url}/readiness`)).status).toBe(200)
    await vi.waitFor(isReady, 30_000)
    await vi.waitFor(async () => {
      const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as { workers: object[] }
      expect(workers).toMatchObject([{ status: 'ready' }, { status: 'ready' }])
    }, 30_000)
    for (let nth = 0; nth < 4; nth++) {
      const input = { input: 'hi', query: 'a', documents: ['b'] }
      for (const path of ['/v1/embeddings', '/v1/rerank']) {
        const body = JSON.stringify({ model: 'm', ...input })
        expect((await fetch(gateway.url + path, { method: 'POST', body })).status).toBe(200)
      }
    }
    expect(chat.requestsTo('POST /v1/embeddings')).toEqual([])
  })
})

test('a rejected api_key is shown at the start and with the worker, which is ready', async () => {
  const { url } = await openSimulatedEngine({ runtime: 'llamacpp', models: ['m'], apiKey: 'right' })
  const open = async (api_key: string) => {
    const workers = { workers: [{ url, api_key }] }
    const config = {
      kernel: { threads: 0, host: '127.0.0.1', port: 0, auth: 'off', log: { level: 'silent' } },
      plugins: { auth: false, chat: {}, health: {}, 'http-workers': {}, workers },
    }
    const gateway = await serveInProcess({ own: [], env: {}, text: () => JSON.stringify(config) })
    onTestFinished(() => gateway.stop())
    const { warnings, url: base } = gateway.info
    const shown = (await (await fetch(`${base}/workers`)).json()) as {
      workers: { status: string; warnings?: string[] }[]
    }
    return { warnings, workers: shown.workers.map(({ status, warnings }) => [status, warnings]) }
  }
  const { warnings, workers } = await open('wrong')
  const [[status, [warning] = []]] = workers as [string, string[]][]
  expect(status).toBe('ready')
  expect(warning).toMatch(/^worker rejects its api_key; correct it \((GET|POST) \S+ answered 401\)$/)
  expect(warnings).toEqual([`${url}: ${warning}`])
  expect(await open('right')).toEqual({ warnings: [], workers: [['ready', undefined]] })
})

describe('MLX', () => {
  test('an image is the mistake of the client; a list of prompts is served one after the other', async () => {
    const { engine, post } = await open('mlx')
    expect((await post(CHAT, { messages: [IMAGE] })).status).toBe(400)
    const { choices } = await answerOf(await post('/v1/completions', { prompt: ['a', 'b'], max_tokens: 3 }))
    expect(choices).toHaveLength(2)
    expect(engine.stats.total).toBe(3)
    expect((await post('/v1/completions', { prompt: [1, 2] })).status).toBe(400)
  })

  test('an engine that generates no more is noticed without a probe interval', async () => {
    const { engine, url, post } = await open('mlx')
    engine.faults.add({ fault: 'die', count: 1, probability: 1, match: {} })
    expect((await post(CHAT, { messages: [user] })).status).toBe(503)
    const traffic = setInterval(() => void post(CHAT, { messages: [user] }).catch(() => {}), 50)
    await vi.waitFor(async () => expect((await fetch(`${url}/readiness`)).status).toBe(503), 10_000)
    clearInterval(traffic)
  })
})

describe('transformers', () => {
  test('streams end with [DONE], and Responses have the status of the limit', async () => {
    const { post } = await open('transformers')
    expect((await eventsOf(await post(CHAT, { messages: [user], stream: true }))).at(-1)).toBe('[DONE]')
    const response = await post('/v1/responses', { input: 'hi', max_output_tokens: 3, store: false })
    expect(await response.json()).toMatchObject({ status: 'incomplete' })
  })
})
