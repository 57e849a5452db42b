/** The built gateway with configured workers that respond late or never. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  runCommand,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

afterEach(() => stopCommands())

/** Does not wait for the workers. */
const start = (urls: readonly string[], readinessWaitMs: number) =>
  startBuiltGateway({
    kernel: { threads: 1, lifecycle: { readinessWaitMs } },
    plugins: { workers: { urls, health: {}, startupCheckIntervalSecs: 0.2 } },
  })

async function readiness(gateway: BuiltGateway) {
  const response = await gateway.get('/readiness')
  return {
    code: response.status,
    ...((await response.json()) as { healthy_workers: number; pending_workers: number; missing?: object }),
  }
}

async function chat(gateway: BuiltGateway, model: string) {
  const response = await gateway.send('POST', '/v1/chat/completions', {
    model,
    max_tokens: 2,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const { error } = (await response.json()) as { error?: { code: string; message: string } }
  return [response.status, error?.code ?? null, response.headers.get('retry-after')]
}

const SERVED = [200, null, null]
const PENDING = [503, 'workers_pending', '5']
const UNKNOWN = [404, 'model_not_found', null]

test('readiness waits for a late worker; until it has responded, unknown models are 503 and not 404', async () => {
  const early = await startSim('--model', 'early')
  const port = await freePort()
  const gateway = await start([early.url, `http://127.0.0.1:${port}`], 60_000)
  await until(async () => {
    const { healthy_workers: healthy, pending_workers: pending } = await readiness(gateway)
    return healthy === 1 && pending === 1
  })
  expect(await readiness(gateway)).toMatchObject({
    code: 503,
    status: 'not ready',
    reason: '1 of 2 configured workers not yet registered',
    healthy_workers: 1,
    configured_workers: 2,
    pending_workers: 1,
  })
  expect(await chat(gateway, 'early')).toEqual(SERVED)
  expect(await chat(gateway, 'late')).toEqual(PENDING)
  expect(await chat(gateway, 'no-such-model')).toEqual(PENDING)

  const late = runCommand(['sim', '--port', String(port), '--model', 'late'])
  await late.line(/"simulated engine listening"/)
  const seen = new Set<number>()
  await until(async () => {
    const [status] = await chat(gateway, 'late')
    seen.add(Number(status))
    return status === 200
  })
  expect([...seen].filter((status) => status !== 503 && status !== 200)).toEqual([])
  await until(async () => (await readiness(gateway)).code === 200)
  expect(await readiness(gateway)).toEqual({
    code: 200,
    status: 'ready',
    healthy_workers: 2,
    total_workers: 2,
    configured_workers: 2,
    pending_workers: 0,
  })
  expect(await chat(gateway, 'no-such-model')).toEqual(UNKNOWN)
})

test('the port opens when the configured workers have responded', async () => {
  const { url } = await startSim('--model', 'early')
  const port = await freePort()
  const file = join(makeFolder(), 'weir.json')
  writeFileSync(
    file,
    JSON.stringify({
      kernel: { auth: 'off', threads: 2, port, warmUp: false },
      plugins: { health: {}, workers: { urls: [url] } },
    }),
  )
  runCommand(['serve', '--config', file])
  const first = await new Promise<number>((resolve) => {
    const attempt = () =>
      fetch(`http://127.0.0.1:${port}/readiness`).then(
        ({ status }) => resolve(status),
        () => setTimeout(attempt, 1),
      )
    void attempt()
  })
  expect(first).toBe(200)
})

test('after the configured time the gateway is ready with the workers that it has, and says what is missing', async () => {
  const early = await startSim('--model', 'early')
  const [dead, listed] = [await freePort(), await freePort()]
  const gateway = await startBuiltGateway({
    kernel: { threads: 1, lifecycle: { readinessWaitMs: 2_000 } },
    plugins: {
      workers: {
        health: {},
        urls: [early.url, `http://127.0.0.1:${dead}`],
        workers: [{ url: `http://127.0.0.1:${listed}`, models: [{ id: 'listed' }] }],
      },
    },
  })
  await until(async () => (await readiness(gateway)).missing !== undefined)
  expect(await readiness(gateway)).toMatchObject({
    code: 200,
    healthy_workers: 1,
    configured_workers: 3,
    pending_workers: 2,
    missing: ['2 of 3 configured workers not yet registered'],
  })
  await until(async () => (await chat(gateway, 'no-such-model'))[0] === 404)
  expect(await chat(gateway, 'early')).toEqual(SERVED)
  expect(await chat(gateway, 'listed')).toEqual(PENDING)
})
