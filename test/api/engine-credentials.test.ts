/** Credentials of workers whose plugin sends them in headers of its own: independent of whether the workers are external. */
import { afterEach, expect, test } from 'vitest'
import { definePlugin, Generations, type Transport, Type, type WorkerControl } from '#kernel'
import { HttpTransport } from '../../plugins/workers/http/http-transport.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const MODE = 'keyed'
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function keyedPlugin(isExternal: boolean) {
  const control: WorkerControl = {
    mode: MODE,
    schemes: [MODE],
    runtimes: [],
    actions: [],
    isExternal: () => isExternal,
    probe: async () => null,
    describe: async () => ({
      runtimeType: 'keyed',
      models: [{ id: 'keyed-model' }],
      labels: {},
      apis: ['chat'],
      isExternal,
    }),
    writeCredentials(headers, _ctx, worker) {
      headers.push('x-engine-key', worker.apiKey ?? 'none')
      return true
    },
  }
  return definePlugin({
    manifest: {
      name: 'keyed',
      version: '1.0.0',
      description: 'Workers with their own credential header.',
      config: Type.Object({}),
    },
    register(host) {
      const http = new HttpTransport(host.kernelConfig.upstream)
      const transport: Transport = {
        mode: MODE,
        open: (worker, request, limits, handler) =>
          http.open({ ...worker, url: worker.url.replace(MODE, 'http') }, request, limits, handler),
        onWorkersChanged: () => {},
        close: () => http.close(),
      }
      host.transport(transport)
      host.workerControl(control)
    },
  })
}

async function open(options: Parameters<typeof startGateway>[0]): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, kernel: { auth: 'off' } })
  closers.push(() => gateway.stop())
  return gateway
}

async function startWorker(): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker()
  closers.push(() => worker.close())
  return worker
}

const chat = ({ url }: TestGateway, model: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
  })

test.each([false, true])(
  'a mode writes its own credentials (external: %s), and its models are listed',
  async (isExternal) => {
    const worker = await startWorker()
    const gateway = await open({
      own: [keyedPlugin(isExternal)],
      plugins: {
        chat: {},
        workers: { workers: [{ url: worker.url.replace('http', MODE), api_key: 'engine-key' }] },
      },
    })
    await expect.poll(async () => (await chat(gateway, 'keyed-model')).status).toBe(200)
    const request = worker.requestsTo('POST /v1/chat/completions')[0]
    expect(request.header('x-engine-key')).toBe('engine-key')
    expect(request.header('authorization')).toBeUndefined()
    const listed = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: object[] }
    expect(listed.data).toMatchObject([
      { id: 'keyed-model', owned_by: isExternal ? 'external' : 'self_hosted' },
    ])
  },
)

test('an engine adapter with its own credential header sends no other credential', async () => {
  const worker = await startWorker()
  worker.script('POST /own', jsonAnswer({ text: 'hello' }))
  const engine = definePlugin({
    manifest: {
      name: 'own-engine',
      version: '1.0.0',
      description: 'An engine with its own credential header.',
      uses: [Generations],
      config: Type.Object({}),
    },
    register(host) {
      host.use(Generations).addEngine({
        name: 'own',
        sendsCredentials: true,
        accepts: ({ apis }) => apis.includes('own'),
        requestFor: (attempt) => ({
          method: 'POST',
          path: '/own',
          headers: ['x-own-key', attempt.worker.apiKey ?? ''],
          body: Buffer.from('{}'),
        }),
        read: ({ model, worker: entry }, sink) => ({
          onStart() {
            sink.emit({
              type: 'started',
              id: null,
              model,
              createdAtSec: 1,
              inputTokens: null,
              systemFingerprint: null,
              worker: entry,
            })
          },
          onData() {
            sink.emit({ type: 'text', choice: 0, delta: 'hello' })
          },
          onEnd() {
            sink.emit({ type: 'choice_done', choice: 0, reason: 'stop', matchedStop: null })
            sink.emit({ type: 'finished', usage: null })
          },
        }),
      })
    },
  })
  const gateway = await open({
    own: [engine],
    plugins: {
      chat: {},
      generations: {},
      workers: {
        workers: [{ url: worker.url, apis: ['own'], models: [{ id: 'm' }], api_key: 'k' }],
      },
    },
  })
  await expect.poll(async () => (await chat(gateway, 'm')).status).toBe(200)
  const request = worker.requestsTo('POST /own')[0]
  expect(request.header('x-own-key')).toBe('k')
  expect(request.header('authorization')).toBeUndefined()
})
