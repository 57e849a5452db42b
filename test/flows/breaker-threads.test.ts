/** One circuit breaker over two data threads: failures of one count for both, also if one of them crashes. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, sumOf, until } from '../support/built-command.ts'
import {
  dropAnswer,
  jsonAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'

const CHAT = 'POST /v1/chat/completions'
const crash = { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) }
const body = { model: 'test-model', messages: [] }
/** A connection reset: an error status would only slow the last worker. */
const broken = dropAnswer('reset')

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

async function setUp(breaker: object): Promise<{ gateway: BuiltGateway; worker: ScriptedWorker }> {
  const worker = await startScriptedWorker()
  workers.push(worker)
  worker.script(CHAT, broken)
  const gateway = await startBuiltGateway({
    kernel: { log: { level: 'error' }, retry: { maxAttempts: 1 }, breaker },
    plugins: { crash },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
  })
  return { gateway, worker }
}

/** Sends one request on a new connection. @returns its status and thread */
async function send(gateway: BuiltGateway): Promise<{ status: number; thread: string | null }> {
  const response = await gateway.send('POST', '/v1/chat/completions', body)
  await response.text()
  return { status: response.status, thread: response.headers.get('x-thread') }
}

test('failures on both threads together open the breaker for both at failureThreshold', async () => {
  const { gateway, worker } = await setUp({ failureThreshold: 7, openMs: 60_000 })
  const results = []
  for (let i = 0; i < 7; i++) results.push(await send(gateway))
  expect(results.map(({ status }) => status)).toEqual(Array(7).fill(502))
  const threads = new Set<string | null>()
  await until(async () => {
    const { status, thread } = await send(gateway)
    expect(status).toBe(503)
    return threads.add(thread).size === 2
  })
  expect(worker.requestsTo(CHAT)).toHaveLength(7)
  const samples = await gateway.metrics()
  expect(sumOf(samples, 'weir_worker_cb_state')).toBe(1)
  expect(sumOf(samples, 'weir_worker_cb_transitions_total')).toBe(1)
})

test('both threads together admit one probe, and a crash of its thread admits the next', async () => {
  const { gateway, worker } = await setUp({ failureThreshold: 1, successThreshold: 1, openMs: 1 })
  expect((await send(gateway)).status).toBe(502)
  const hold = Promise.withResolvers<void>()
  worker.script(CHAT, sseAnswer(['{"choices":[]}', { until: hold.promise }, '[DONE]']))
  const probe = openSse(`${gateway.url}/v1/chat/completions`, { body: { ...body, stream: true } })
  await probe.receive(1)
  const others = await Promise.all(Array.from({ length: 30 }, () => send(gateway)))
  expect(others.map(({ status }) => status)).toEqual(Array(30).fill(503))
  expect(new Set(others.map(({ thread }) => thread)).size).toBe(2)
  expect(worker.requestsTo(CHAT)).toHaveLength(2)

  await until(async () => {
    const response = await gateway.send('POST', `/crash/${probe.headers.get('x-thread')}`)
    return ((await response.json()) as { isMeant: boolean }).isMeant
  })
  await probe.done
  worker.script(CHAT, jsonAnswer({ choices: [] }))
  await until(async () => {
    const answer = await send(gateway).catch(() => null) // the dying thread may have accepted the connection
    return answer?.status === 200
  })
  expect((await send(gateway)).status).toBe(200)
  hold.resolve()
})
