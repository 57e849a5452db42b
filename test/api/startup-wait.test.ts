/** What a start needs: tokenizers of gRPC workers for a limited time, and a store that a plugin cannot do without. */
import { afterEach, expect, test } from 'vitest'
import { definePlugin, SharedStore, Type } from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type ScriptedEngine, startScriptedEngine } from '../support/scripted-engine.ts'

let gateway: TestGateway | null = null
let engine: ScriptedEngine | null = null
afterEach(async () => {
  await gateway?.stop()
  await engine?.close()
  gateway = null
  engine = null
})

/** A gateway in front of a gRPC engine whose tokenizer is in `source`. @param isListed in `load` instead of a label */
async function start(source: string, readinessWaitMs: number, isListed = false) {
  engine = await startScriptedEngine()
  const labels = isListed ? {} : { tokenizer_path: source }
  const worker = { url: engine.url, models: [{ id: 'test-model' }], labels }
  gateway = await startGateway({
    kernel: { lifecycle: { readinessWaitMs } },
    plugins: {
      auth: {},
      health: {},
      grpc: {},
      parsers: {},
      policies: {},
      chat: {},
      tokenizers: isListed ? { autoload: false, load: [{ name: 'test-model', source }] } : {},
      workers: { workers: [worker], health: { disable_health_check: true } },
    },
  })
  const { url } = gateway
  return async () => {
    const response = await fetch(`${url}/readiness`)
    return { code: response.status, ...((await response.json()) as { reason?: string }) }
  }
}

const MISSING = 'tokenizer not yet registered'

test.each([
  ['of a gRPC worker', false],
  ['of the configuration', true],
])('the port opens when the tokenizer %s is loaded', async (_which, isListed) => {
  const read = await start('weir:sample', 60_000, isListed)
  const readiness = await read()
  expect(readiness).toMatchObject({ code: 200, status: 'ready', healthy_workers: 1 })
  expect(readiness).not.toHaveProperty('missing')
})

test('a tokenizer that cannot be loaded delays readiness for the configured time only, and the port for less', async () => {
  const read = await start('/no/such/folder', 8_000)
  await expect.poll(async () => (await read()).reason).toBe(MISSING)
  expect((await read()).code).toBe(503)
  await expect.poll(async () => (await read()).code).toBe(200)
  expect(await read()).toMatchObject({ status: 'ready', missing: [MISSING] })
})

test('a plugin that does not declare the shared store degradable stops the start without it', async () => {
  const own = (degradable: boolean) =>
    definePlugin({
      manifest: {
        name: 'ledger',
        version: '0.1.0',
        description: 'of a test',
        uses: [SharedStore],
        ...(degradable && { degradable: [SharedStore] }),
        config: Type.Object({}),
      },
      register: (host) => void host.use(SharedStore),
    })
  const plugins = {
    health: {},
    workers: {},
    postgres: { url: 'postgres://weir@127.0.0.1:1/weir', bootWaitMs: 0 },
  }
  const open = (isDegradable: boolean) =>
    startGateway({ kernel: { auth: 'off' }, plugins, own: [own(isDegradable)] })
  await expect(open(false)).rejects.toThrow(/which ledger cannot start without/)
  gateway = await open(true)
  expect(await (await fetch(`${gateway.url}/readiness`)).json()).toMatchObject({
    degraded: [{ service: 'shared-store' }],
  })
})

test('the wait for the database must end before the step of the plugin does', async () => {
  const plugins = { workers: {}, postgres: { url: 'postgres://weir@127.0.0.1:1/weir', bootWaitMs: 10_000 } }
  await expect(startGateway({ kernel: { auth: 'off' }, plugins })).rejects.toThrow(
    /plugins.postgres.bootWaitMs must be less than kernel.lifecycle.stepMs \(10000\), unless that is 0 \(got 10000\)/,
  )
})
