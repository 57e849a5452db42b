import { expect, test } from 'vitest'
import type { AuthService, WorkerCall, WorkerEntry, WorkerResponse } from '#kernel'
import { listModels, type ModelListSources, registeredModels } from './model-list.ts'

const local = (...models: { id: string; [member: string]: unknown }[]) =>
  ({ runtimeType: 'vllm', connectionMode: 'http', models, labels: {} }) as unknown as WorkerEntry
const external = (url: string) =>
  ({
    url,
    isExternal: true,
    connectionMode: 'http',
    models: [{ id: 'ext' }],
    labels: {},
  }) as unknown as WorkerEntry
const entry = (id: string, owned_by = 'self_hosted') => ({ id, object: 'model', created: 0, owned_by })
const EXTERNAL = entry('ext', 'external')
const auth = { isGatewayKey: (header: string) => header === 'Bearer own' } as unknown as AuthService

/** External workers with a response per URL; records the requests. */
function sources(
  workers: WorkerEntry[],
  answers: Record<string, unknown>,
  overrides: Partial<ModelListSources> = {},
) {
  const calls: { url: string; apiKey: string | null; call: WorkerCall }[] = []
  const controls = {
    async call(worker: Pick<WorkerEntry, 'url' | 'apiKey'>, call: WorkerCall) {
      calls.push({ url: worker.url, apiKey: worker.apiKey, call })
      const value = answers[worker.url]
      if (value === undefined) throw new Error('refused')
      return { status: 200, json: () => value } as WorkerResponse
    },
  }
  const all: ModelListSources = {
    controls,
    workers,
    virtualModels: [],
    isReady: () => true,
    auth,
    callerKeyHosts: ['e', 'dead', 'empty', 'odd', 'ok', 'late', 'fast', 'slow'],
    timeoutMs: 5_000,
    ...overrides,
  }
  return { calls, all }
}

const caller = (headers: Record<string, string>) => ({ header: (name: string) => headers[name] })

test('models of all local workers are listed, each id once, and the first card wins', () => {
  const workers = [
    local({ id: 'a' }, { id: 'b', provider: 'xai' }),
    local({ id: 'a', provider: 'late' }, { id: 'c', created: 5, context_length: 2_048, aliases: ['d'] }),
    local(),
  ]
  expect(registeredModels(workers)).toEqual([
    entry('a'),
    entry('b', 'xai'),
    { ...entry('c'), created: 5, max_model_len: 2_048, aliases: ['d'] },
  ])
})

test('models of external workers are listed under their provider', async () => {
  const { all } = sources([external('https://e:1'), local({ id: 'a' })], {})
  expect(await listModels(caller({}), all)).toEqual([EXTERNAL, entry('a')])
  const known = { ...external('https://e:1'), provider: 'openai' }
  expect(registeredModels([known])).toEqual([entry('ext', 'openai')])
})

test('an empty list is a 503', async () => {
  for (const workers of [[], [local()]]) {
    await expect(listModels(caller({}), sources(workers, {}).all)).rejects.toMatchObject({ status: 503 })
  }
})

test.each([
  ['authorization', 'Bearer foreign', 'Bearer foreign'],
  ['authorization', 'bearer foreign', 'Bearer foreign'],
  ['x-api-key', 'foreign', 'foreign'],
])('a foreign key in %s (%j) is used to query the external workers', async (name, value, sent) => {
  const { calls, all } = sources([external('https://e:1'), local({ id: 'a' })], {
    'https://e:1': { data: [{ id: 'gpt', created: 7, owned_by: 'openai' }, { nonsense: true }] },
  })
  expect(await listModels(caller({ [name]: value }), all)).toEqual([
    { id: 'gpt', object: 'model', created: 7, owned_by: 'openai' },
  ])
  expect(calls).toEqual([
    {
      url: 'https://e:1',
      apiKey: null,
      call: { method: 'GET', path: '/v1/models', headers: [name, sent], timeoutMs: 5_000 },
    },
  ])
})

test.each([1e18, -1e300, 1.5, '7', null])('an invalid creation time %j becomes 0', async (created) => {
  const { all } = sources([external('https://e:1')], { 'https://e:1': { data: [{ id: 'gpt', created }] } })
  expect(await listModels(caller({ authorization: 'Bearer foreign' }), all)).toMatchObject([{ created: 0 }])
})

test.each([
  { authorization: 'Bearer own' },
  { 'x-api-key': 'own' },
  { authorization: 'Bearer foreign', 'x-api-key': 'own' },
  { authorization: 'Bearer own', 'x-api-key': 'foreign' },
  { authorization: 'Basic foreign' },
  { authorization: 'Bearer ' },
])('%j is not sent to workers', async (headers) => {
  const { calls, all } = sources([external('https://e:1'), local({ id: 'a' })], {
    'https://e:1': { data: [{ id: 'x' }] },
  })
  expect(await listModels(caller(headers as Record<string, string>), all)).toEqual([EXTERNAL, entry('a')])
  expect(calls).toEqual([])
})

test('without an auth plugin no key is sent to workers', async () => {
  const { calls, all } = sources([external('https://e:1'), local({ id: 'a' })], {}, { auth: null })
  await listModels(caller({ authorization: 'Bearer foreign' }), all)
  expect(calls).toEqual([])
})

test('registered models are listed if external workers fail, list nothing or are not ready', async () => {
  const workers = [
    external('https://dead:1'),
    external('https://empty:1'),
    external('https://odd:1'),
    local({ id: 'a' }),
  ]
  const { calls, all } = sources(workers, { 'https://empty:1': { data: [] }, 'https://odd:1': 'gibberish' })
  expect(await listModels(caller({ 'x-api-key': 'foreign' }), all)).toEqual([EXTERNAL, entry('a')])
  expect(calls).toHaveLength(3)
  const notReady = sources(workers, {}, { isReady: () => false })
  expect(await listModels(caller({ 'x-api-key': 'foreign' }), notReady.all)).toEqual([EXTERNAL, entry('a')])
  expect(notReady.calls).toEqual([])
})

test("a caller's key is sent only to configured hosts, over TLS", async () => {
  const answers = { 'https://e:1': { data: [{ id: 'x' }] }, 'http://e:1': { data: [{ id: 'x' }] } }
  const headers = caller({ authorization: 'Bearer foreign' })
  for (const [url, callerKeyHosts] of [
    ['http://e:1', ['e']],
    ['https://e:1', ['f']],
    ['https://e:1', []],
  ] as const) {
    const { calls, all } = sources([external(url), local({ id: 'a' })], answers, { callerKeyHosts })
    await listModels(headers, all)
    expect(calls).toEqual([])
  }
})
