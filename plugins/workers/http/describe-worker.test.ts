import { beforeEach, describe, expect, test } from 'vitest'
import {
  type DescribeTools,
  UpstreamFailure,
  type WorkerCall,
  type WorkerDescription,
  type WorkerRegistration,
  type WorkerResponse,
  type WorkerTarget,
} from '#kernel'
import { cloudProvider, describeWorker, isExternalService, nextProbeDelayMs } from './describe-worker.ts'
import { groupDated } from './discover-models.ts'

type Routes = Record<string, unknown>

/** A worker with these routes: JSON with 200, a number as a status, and 404 for all others. */
function fakeWorker(routes: Routes) {
  const requests: { path: string; key: string | null; provider: string | null }[] = []
  const call = async (
    { apiKey, provider = null }: WorkerTarget,
    { method, path }: WorkerCall,
  ): Promise<WorkerResponse> => {
    requests.push({ path, key: apiKey, provider })
    const answer = method === 'GET' ? routes[path] : routes[`${method} ${path}`]
    if (answer instanceof Error) throw answer
    const status = answer === undefined ? 404 : typeof answer === 'number' ? answer : 200
    const body = Buffer.from(JSON.stringify(typeof answer === 'object' ? answer : {}))
    return {
      status,
      headers: [],
      body,
      header: () => undefined,
      json: () => JSON.parse(body.toString()),
    }
  }
  return { call, requests, paths: () => requests.map(({ path }) => path) }
}

const UP = { '/health': {} }
const list = (...data: object[]) => ({ object: 'list', data })
const warnings: string[] = []
const silent = {
  debug() {},
  info() {},
  warn: (_fields: unknown, text?: string) => void warnings.push(text ?? ''),
  error() {},
  child: () => silent,
}
beforeEach(() => void warnings.splice(0))

/** Waits resolve immediately. */
const TOOLS: DescribeTools = {
  signal: new AbortController().signal,
  wait: async () => {},
  note: () => {},
  log: silent,
  health: { path: '/health', timeoutMs: 5_000 },
  startupTimeoutMs: 1_800_000,
  checkIntervalMs: 30_000,
  expandsRanks: false,
  serviceKeys: new Map(),
}
const REGISTRATION: WorkerRegistration = {
  url: 'http://w:1',
  apiKey: null,
  runtimeType: 'unspecified',
  models: null,
  labels: {},
  provider: null,
  isConfigured: false,
}
const run = (
  registration: Partial<WorkerRegistration>,
  worker: ReturnType<typeof fakeWorker>,
  tools: Partial<DescribeTools> = {},
): Promise<WorkerDescription> =>
  describeWorker(worker.call, { ...REGISTRATION, ...registration }, { ...TOOLS, ...tools })

describe('engines', () => {
  test('sglang is detected by the owner of its models, and its server info becomes labels and card', async () => {
    const worker = fakeWorker({
      ...UP,
      '/v1/models': list({ id: 'demo-7b', owned_by: 'sglang', max_model_len: 8192 }),
      '/server_info': {
        served_model_name: 'demo-7b',
        tp_size: 2,
        version: '0.5',
        tool_call_parser: 'hermes',
        // Labels are visible in the worker list.
        api_key: 'k1',
        admin_api_key: 'k2',
        x: {},
      },
      '/model_info': { model_path: '/models/demo', is_generation: true, has_image_understanding: true },
    })
    expect(await run({}, worker)).toEqual({
      runtimeType: 'sglang',
      apis: ['chat', 'completions'],
      isExternal: false,
      labels: {
        served_model_name: 'demo-7b',
        tp_size: '2',
        version: '0.5',
        tool_call_parser: 'hermes',
        model_path: '/models/demo',
        is_generation: 'true',
        has_image_understanding: 'true',
        max_model_len: '8192',
      },
      models: [
        {
          id: 'demo-7b',
          model_type: ['chat', 'completions', 'responses', 'tools', 'vision'],
          context_length: 8192,
          tool_parser: 'hermes',
        },
      ],
    })
    expect(worker.paths().filter((path) => path === '/v1/models').length).toBe(1)
  })

  test('older sglang releases are queried at the older routes', async () => {
    const worker = fakeWorker({
      ...UP,
      '/get_server_info': { served_model_name: 'old', max_total_tokens: 100 },
    })
    const found = await run({ runtimeType: 'sglang' }, worker)
    expect(found.models).toMatchObject([{ id: 'old', context_length: 100 }])
  })

  test('vllm lists every model that it serves, including adapters', async () => {
    const worker = fakeWorker({
      ...UP,
      '/v1/models': list(
        { id: 'base', owned_by: 'vllm', root: '/models/base', max_model_len: 4096 },
        { id: 'adapter', owned_by: 'vllm', parent: 'base', max_model_len: 2048 },
      ),
      '/version': { version: '0.11.0' },
    })
    const found = await run({}, worker)
    expect(found.runtimeType).toBe('vllm')
    expect(found.labels).toMatchObject({ version: '0.11.0', model_path: '/models/base' })
    expect(found.models).toMatchObject([
      { id: 'base', context_length: 4096 },
      { id: 'adapter', context_length: 2048 },
    ])
  })

  test.each([
    [{ '/v1/models': list({ id: 'm', owned_by: 'nvidia' }) }, 'sglang'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'tensorrt_llm' }) }, 'trtllm'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'mlx-lm' }) }, 'mlx'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'constructor' }) }, 'unspecified'],
    [{ '/v1/models': list({ id: 'm', owned_by: '__proto__' }) }, 'unspecified'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'me' }), '/version': { version: '1' } }, 'vllm'],
    [{ '/server_info': {} }, 'sglang'],
    [{ '/get_model_info': {} }, 'sglang'],
    // Without an owner, as mlx_lm.server, and with one that says nothing.
    [{ '/v1/models': list({ id: 'm' }) }, 'unspecified'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'local' }) }, 'unspecified'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'infinity' }) }, 'infinity'],
    [{ '/v1/models': list({ id: 'm', owned_by: 'local', status: { value: 'loaded' } }) }, 'transformers'],
    [{}, 'unspecified'],
  ])('%j is %s', async (routes, runtime) => {
    expect((await run({}, fakeWorker({ ...UP, ...routes }))).runtimeType).toBe(runtime)
  })

  test('a configured runtime is not detected', async () => {
    const worker = fakeWorker({ ...UP, '/v1/models': list({ id: 'm', owned_by: 'vllm' }) })
    expect((await run({ runtimeType: 'trtllm' }, worker)).runtimeType).toBe('trtllm')
    expect(worker.paths()).not.toContain('/version')
  })

  test('an embedding engine is not offered for chat', async () => {
    const worker = fakeWorker({
      ...UP,
      '/v1/models': list({ id: 'e' }),
      '/model_info': { is_generation: false },
    })
    expect((await run({}, worker)).models).toMatchObject([{ id: 'e', model_type: ['embeddings'] }])
  })
})

describe('llama.cpp', () => {
  const props = {
    total_slots: 4,
    model_path: '/m.gguf',
    build_info: 'b1',
    default_generation_settings: { n_ctx: 2048 },
  }

  test.each([
    [
      {
        '/v1/models': list({ id: 'm', owned_by: 'llamacpp' }),
        '/props': { ...props, total_slots: undefined },
      },
    ],
    [{ '/v1/models': list({ id: 'm', owned_by: 'me' }), '/props': props }],
  ])('is detected by the owner of its model or by its properties', async (routes) => {
    const found = await run({}, fakeWorker({ ...UP, ...routes }))
    expect(found).toMatchObject({
      runtimeType: 'llamacpp',
      labels: { model_path: '/m.gguf', version: 'b1', context_length: '2048' },
      models: [{ id: 'm', context_length: 2048 }],
    })
  })
})

describe('APIs', () => {
  const apisOf = async (registration: Partial<WorkerRegistration>, paths: unknown) =>
    (await run(registration, fakeWorker({ ...UP, '/openapi.json': { paths } }))).apis
  const usual = ['chat', 'completions']

  test('an engine with messages and responses among its paths gets them as native APIs', async () => {
    expect(await apisOf({}, { '/v1/messages': { post: {} }, '/v1/responses': { post: {} } })).toEqual([
      ...usual,
      'messages',
      'responses',
    ])
    expect(await apisOf({}, { '/v1/responses/{id}': { get: {} }, '/v1/responses': { get: {} } })).toEqual(
      usual,
    )
  })

  test.each([null, [], 'x', { '/v1/messages': null }, { __proto__: { '/v1/messages': { post: {} } } }])(
    'an invalid list of paths, %j, is ignored',
    async (paths) => {
      expect(await apisOf({}, paths)).toEqual(usual)
    },
  )

  test('an engine without a description of its paths is asked for each: only invalid requests are sent', async () => {
    const worker = fakeWorker({
      ...UP,
      'POST /v1/messages': 500,
      'POST /v1/responses': 501,
    })
    expect((await run({}, worker)).apis).toEqual([...usual, 'messages'])
    expect(worker.paths()).toContain('/v1/responses')
    const owned = { '/v1/models': list({ id: 'm', owned_by: 'llamacpp' }) }
    const llama = fakeWorker({ ...UP, ...owned, 'POST /v1/messages': 400, 'POST /v1/responses': 400 })
    expect((await run({}, llama)).apis).toEqual([...usual, 'messages'])
  })

  test('embeddings and the like are assumed unless their routes are missing; descriptions are no proof', async () => {
    const routes = {
      'POST /v1/chat/completions': 400,
      'POST /v1/completions': 422,
      'POST /generate': 404,
      'POST /v1/embeddings': 400,
      'POST /v1/classify': 501,
      'POST /v1/rerank': new UpstreamFailure('reset', 'no answer', false),
    }
    const expected = [...usual, 'embeddings', 'rerank']
    expect((await run({}, fakeWorker({ ...UP, ...routes }))).apis).toEqual(expected)
    const paths = { '/v1/classify': { post: {} } }
    const described = fakeWorker({ ...UP, ...routes, '/openapi.json': { paths } })
    expect((await run({}, described)).apis).toEqual([...usual, 'embeddings', 'classify', 'rerank'])
    // An engine for embeddings alone.
    const only = { ...UP, '/v1/models': list({ id: 'm' }), 'POST /v1/embeddings': 422 }
    const { apis, models } = await run({}, fakeWorker(only))
    expect([apis, models]).toMatchObject([['embeddings'], [{ id: 'm', model_type: ['embeddings'] }]])
    const both = await run({}, fakeWorker({ ...only, 'POST /v1/chat/completions': 500 }))
    expect([both.apis, both.models]).toMatchObject([
      ['chat', 'embeddings'],
      [{ model_type: expect.arrayContaining(['chat']) }],
    ])
    const closed = fakeWorker({ ...UP, 'POST /v1/embeddings': 401 })
    expect((await run({ apiKey: 'k' }, closed)).apis).toContain('embeddings')
  })

  test('cloud services are detected by host', async () => {
    const none = fakeWorker({})
    const apis = async (url: string) => (await run({ url }, none)).apis
    expect(await apis('https://api.anthropic.com')).toEqual(['messages'])
    expect(await apis('https://api.openai.com')).toContain('responses')
    expect(await apis('https://api.x.ai')).not.toContain('generate')
  })
})

describe('models', () => {
  const worker = () => fakeWorker({ ...UP, '/v1/models': list({ id: 'm', max_model_len: 10 }) })

  test('configured cards are kept and completed', async () => {
    const { models } = await run({ models: [{ id: 'mine' }, { id: 'two', context_length: 5 }] }, worker())
    expect(models).toMatchObject([
      { id: 'mine', context_length: 10 },
      { id: 'two', context_length: 5 },
    ])
  })

  test('an empty list of models is a wildcard, and so is a worker without a model list', async () => {
    expect((await run({ models: [] }, worker())).models).toEqual([])
    expect((await run({}, fakeWorker(UP))).models).toEqual([])
  })

  test('a wildcard, a rejected key and an unknown engine are warned of', async () => {
    const wildcard = expect.stringContaining('lists no models and serves any')
    const rejected = expect.stringContaining('rejects its api_key')
    const unknown = expect.stringContaining('set its runtime_type')
    const expectWarnings = async (registration: object, routes: Routes, expected: unknown[]) => {
      warnings.length = 0
      const described = await run(registration, fakeWorker({ ...UP, ...routes }))
      expect(warnings).toEqual(expected)
      expect(described.warnings ?? []).toEqual(expected)
    }
    await expectWarnings({}, { '/v1/models': 401, '/server_info': 403 }, [wildcard])
    await expectWarnings({ apiKey: 'k' }, { '/v1/models': 401 }, [rejected, wildcard])
    await expectWarnings({ models: [] }, { '/v1/models': 401 }, [])
    await expectWarnings({}, {}, [unknown, wildcard])
    // The list is open, and only a protected route shows that the key is wrong.
    const open = { '/v1/models': list({ id: 'm', owned_by: 'llamacpp' }), 'POST /v1/messages': 401 }
    await expectWarnings({ apiKey: 'k' }, open, [rejected])
  })

  test('a model list shows the kind of a model, its aliases, context and time', async () => {
    const entry = {
      id: 'm',
      created: 5,
      aliases: ['m', 'other', 7],
      meta: { n_ctx: 2_048 },
      capabilities: ['embed'],
      owned_by: 'infinity',
    }
    const { models, runtimeType } = await run({}, fakeWorker({ ...UP, '/v1/models': list(entry) }))
    expect(runtimeType).toBe('infinity')
    expect(models).toEqual([
      { id: 'm', model_type: ['embeddings'], created: 5, aliases: ['other'], context_length: 2_048 },
    ])
  })

  test('an unreachable worker gets no further queries', async () => {
    const worker = fakeWorker({ '/v1/models': new UpstreamFailure('connect', 'refused', false) })
    await run({}, worker, { health: null })
    expect(worker.paths()).toEqual(['/v1/models'])
  })

  test('labels of the specification decide the model id', async () => {
    expect((await run({ labels: { model_id: 'own' } }, fakeWorker(UP))).models).toMatchObject([{ id: 'own' }])
  })
})

describe('startup', () => {
  test('a worker that starts late is found without another request', async () => {
    const routes: Routes = { '/health': 503 }
    const worker = fakeWorker(routes)
    let waits = 0
    const wait = async () => {
      waits += 1
      if (waits === 3) routes['/health'] = {}
    }
    await run({}, worker, { wait })
    expect(worker.paths().filter((path) => path === '/health').length).toBe(4)
  })

  test('a worker that does not start is reported with its last response', async () => {
    const worker = fakeWorker({ '/health': new UpstreamFailure('connect', 'connection refused', false) })
    await expect(run({}, worker, { startupTimeoutMs: 1 })).rejects.toThrow(
      'http://w:1 did not become healthy within 0.001 s; last probe: connection refused',
    )
  })

  test('probes start at short intervals, which grow up to the check interval', () => {
    expect([0, 400, 2_000, 20_000, 600_000].map((elapsedMs) => nextProbeDelayMs(elapsedMs, 30_000))).toEqual([
      250, 250, 500, 5_000, 30_000,
    ])
    expect(nextProbeDelayMs(0, 100)).toBe(100)
  })

  test('a worker without health checks is not probed', async () => {
    const worker = fakeWorker({})
    await run({}, worker, { health: null })
    expect(worker.paths()).not.toContain('/health')
  })
})

describe('cloud services', () => {
  test('are detected by domain or by registration', () => {
    const urls = ['https://api.openai.com/v1', 'https://x.ai', 'https://notx.ai', 'https://h/x.ai']
    expect(urls.map(cloudProvider)).toEqual(['openai', 'xai', null, null])
    const isExternal = (url: string, runtimeType = 'unspecified', provider: string | null = null) =>
      isExternalService({ url, runtimeType, provider })
    expect(isExternal('https://api.anthropic.com')).toBe(true)
    expect(isExternal('https://api.x.ai', 'vllm')).toBe(false)
    expect(isExternal('http://w', 'external')).toBe(true)
    expect(isExternal('http://w', 'unspecified', 'anthropic')).toBe(true)
    expect(isExternal('http://w', 'vllm', 'anthropic')).toBe(false)
  })

  test('without a key are wildcards and get no queries', async () => {
    const worker = fakeWorker({})
    const found = await run({ url: 'https://api.openai.com' }, worker)
    expect(found).toMatchObject({ runtimeType: 'external', models: [] })
    expect(worker.requests).toEqual([])
  })

  test('with a key have their models listed, dated names as aliases', async () => {
    const worker = fakeWorker({
      '/v1/models': list({ id: 'gpt-x-2025-01-02' }, { id: 'gpt-x' }, { id: 'embed-1' }),
    })
    const { models } = await run({ url: 'https://api.openai.com', apiKey: 'k' }, worker)
    expect(models).toMatchObject([
      { id: 'gpt-x', aliases: ['gpt-x-2025-01-02'] },
      { id: 'embed-1', model_type: ['embeddings'] },
    ])
  })

  test('are queried with the headers of the provider: of the registration, otherwise of the host', async () => {
    const worker = fakeWorker({ '/v1/models': list({ id: 'c' }) })
    const url = 'https://api.anthropic.com'
    for (const provider of [null, 'mine']) await run({ url, apiKey: 'k', provider }, worker)
    await run({ url: 'http://w:1', apiKey: 'k', provider: 'anthropic' }, worker)
    expect(worker.requests.map(({ provider }) => provider)).toEqual(['anthropic', 'mine', 'anthropic'])
  })

  test('without a model list are wildcards; one that rejects the key fails', async () => {
    const spec = { runtimeType: 'external', apiKey: 'k' }
    expect((await run(spec, fakeWorker({}))).models).toEqual([])
    const refused = fakeWorker({ '/v1/models': 401 })
    await expect(run(spec, refused)).rejects.toMatchObject({ code: 'model_discovery_failed' })
    expect(refused.requests.length).toBe(3)
  })

  test("use the gateway's key for model lists first, at their own hosts only", async () => {
    const serviceKeys = new Map([['openai', 'admin']])
    const models = { '/v1/models': list({ id: 'c' }) }
    const requests = async (registration: Partial<WorkerRegistration>) => {
      const worker = fakeWorker(models)
      await run(registration, worker, { serviceKeys })
      return worker.requests.map(({ key }) => key)
    }
    expect(await requests({ url: 'https://api.openai.com/v1', apiKey: 'own' })).toEqual(['admin'])
    // A host name proves its owner over TLS only.
    expect(await requests({ url: 'http://api.openai.com/v1', apiKey: 'own' })).toEqual(['own'])
    expect(await requests({ url: 'https://api.x.ai', apiKey: 'own' })).toEqual(['own'])
    const elsewhere = { url: 'https://proxy.example/openai/v1', runtimeType: 'external', provider: 'openai' }
    expect(await requests(elsewhere)).toEqual([])
    expect(await requests({ ...elsewhere, apiKey: 'own' })).toEqual(['own'])
    expect(await requests({ ...elsewhere, isConfigured: true })).toEqual(['admin'])
    // The key is never sent unencrypted, even if configured.
    const plain = { ...elsewhere, isConfigured: true, url: 'http://proxy.example/openai/v1' }
    expect(await requests(plain)).toEqual([])
    expect(await requests({ ...plain, url: 'http://127.0.0.1:9/openai/v1' })).toEqual(['admin'])
  })

  test('of gemini have their own model list format', async () => {
    const worker = fakeWorker({ '/v1/models': { models: [{ name: 'models/g-1' }, { name: '' }, null] } })
    const { models } = await run({ url: 'https://generativelanguage.googleapis.com', apiKey: 'k' }, worker)
    expect(models.map(({ id }) => id)).toEqual(['g-1'])
    expect(worker.requests[0]).toMatchObject({ key: 'k', provider: 'gemini' })
  })

  test('with names that differ by more than a date are separate', () => {
    expect(groupDated(['a-20250101', 'a-20250202', 'b']).map(({ id, aliases }) => [id, aliases])).toEqual([
      ['a-20250101', ['a-20250202']],
      ['b', undefined],
    ])
  })
})

describe('data-parallel ranks', () => {
  const engine = (info: unknown, owner = 'sglang') =>
    fakeWorker({ ...UP, '/v1/models': list({ id: 'm', owned_by: owner }), '/server_info': info })
  const dpAware = { expandsRanks: true }

  test('are counted by the server info; one rank is a plain worker', async () => {
    expect((await run({}, engine({ dp_size: 4 }), dpAware)).rankCount).toBe(4)
    expect((await run({}, engine({ dp_size: '2' }), dpAware)).rankCount).toBe(2)
    expect(await run({}, engine({ dp_size: 1 }), dpAware)).not.toHaveProperty('rankCount')
    expect(await run({}, engine({ dp_size: 4 }))).not.toHaveProperty('rankCount')
  })

  test('are found at the older route too', async () => {
    const worker = fakeWorker({
      ...UP,
      '/v1/models': list({ id: 'm', owned_by: 'sglang' }),
      '/get_server_info': { dp_size: 3 },
    })
    expect((await run({}, worker, dpAware)).rankCount).toBe(3)
  })

  test.each([
    [{}, 'sglang'],
    [{ dp_size: 0 }, 'sglang'],
    [{ dp_size: 1.5 }, 'sglang'],
    [{ dp_size: 4_000_000 }, 'sglang'],
    [500, 'sglang'],
    [{ dp_size: 2 }, 'vllm'],
  ])('a registration fails if the number of ranks is missing or invalid: %j of %s', async (info, owner) => {
    await expect(run({}, engine(info, owner), dpAware)).rejects.toMatchObject({
      code: 'rank_discovery_failed',
    })
  })
})
