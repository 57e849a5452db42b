/** Limits over two data threads: shared counts, one FIFO queue, and permits that survive a crash of a thread. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import {
  hangAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'

const CHAT = 'POST /v1/chat/completions'
const crash = { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) }

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

interface Use {
  readonly inUse: number
  readonly waiting: number
}

/** A worker that streams one event and finishes on command, by the number in the request. */
class HeldWorker {
  /** Request numbers in order of arrival. */
  readonly received: number[] = []
  readonly #ends = new Map<number, () => void>()

  /** @param isSilent true for requests that get no response bytes */
  async start(isSilent: (number: number) => boolean): Promise<ScriptedWorker> {
    const worker = await startScriptedWorker()
    workers.push(worker)
    worker.script(CHAT, (request) => {
      const number = Number((request.json() as { user: string }).user)
      const { promise, resolve } = Promise.withResolvers<void>()
      this.received.push(number)
      this.#ends.set(number, resolve)
      if (isSilent(number)) return hangAnswer()
      return sseAnswer(['{}', { until: promise }, '[DONE]'])
    })
    return worker
  }

  async end(number: number): Promise<void> {
    await until(() => this.#ends.has(number))
    this.#ends.get(number)?.()
  }
}

async function setUp(
  limits: object,
  isSilent: (number: number) => boolean = () => false,
): Promise<{ gateway: BuiltGateway; worker: HeldWorker }> {
  const worker = new HeldWorker()
  const { url } = await worker.start(isSilent)
  const gateway = await startBuiltGateway({
    kernel: { threads: 2, log: { level: 'error' } },
    plugins: { crash, limits },
    workers: [{ url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
  })
  return { gateway, worker }
}

function open(gateway: BuiltGateway, number: number, headers: Record<string, string> = {}): SseStream {
  const body = { model: 'test-model', messages: [], stream: true, user: String(number) }
  return openSse(`${gateway.url}/v1/chat/completions`, { body, headers })
}

async function useOf(gateway: BuiltGateway): Promise<Use> {
  const response = await gateway.get('/limits')
  return ((await response.json()) as { use: Use }).use
}

async function reaches(gateway: BuiltGateway, wanted: Use): Promise<void> {
  await until(async () => {
    // A connection in the queue of the dying thread is reset.
    const use = await useOf(gateway).catch(() => null)
    return use !== null && use.inUse === wanted.inUse && use.waiting === wanted.waiting
  })
}

test('one limit and one queue over both threads, oldest first', async () => {
  const { gateway, worker } = await setUp({ maxConcurrentRequests: 2, queueSize: 10 })
  const streams: SseStream[] = []
  for (let number = 0; number < 12; number++) {
    streams.push(open(gateway, number))
    await reaches(gateway, { inUse: Math.min(2, number + 1), waiting: Math.max(0, number - 1) })
    // A permit precedes the request to the worker: the next request, on another thread, could overtake it.
    await until(() => worker.received.length === Math.min(2, number + 1))
  }
  const refused = open(gateway, 99)
  await refused.done
  expect(refused.status).toBe(429)
  expect(worker.received).toHaveLength(2)
  for (let number = 0; number < 12; number++) {
    await worker.end(number)
    await streams[number].done
    const running = Math.min(12, number + 3)
    // Wait for the admitted request before the next permit is released, because two could arrive in either order.
    await until(() => worker.received.length === running)
  }
  expect(worker.received).toEqual([...Array(12).keys()])
  const threads = new Set(streams.map((stream) => stream.headers.get('x-thread')))
  expect([...threads].sort()).toEqual(['1', '2'])
  await reaches(gateway, { inUse: 0, waiting: 0 })
})

test('a limit of running requests of a tenant holds over both threads, and survives a crash', async () => {
  const { gateway, worker } = await setUp({ tenants: { default: { maxConcurrentRequests: 12 } } })
  const tenant = encodeURIComponent('ip:127.0.0.1')
  const running = async () => {
    // A connection to the dying thread is reset.
    const response = await gateway.get(`/limits?tenant=${tenant}`).catch(() => null)
    return ((await response?.json()) as { use: { tenantRunning: number } } | undefined)?.use.tenantRunning
  }
  const started = Array.from({ length: 40 }, (_, number) => open(gateway, number))
  await until(() => started.filter(({ status }) => status === 429).length === 28)
  await until(() => worker.received.length === 12)
  expect(await running()).toBe(12)
  const admitted = started.filter(({ status }) => status !== 429)
  await Promise.all(admitted.map((stream) => stream.receive(1)))
  const left = admitted.filter((stream) => stream.headers.get('x-thread') === '2').length
  await until(async () => {
    const response = await gateway.send('POST', '/crash/1')
    return ((await response.json()) as { isMeant: boolean }).isMeant
  })
  await until(async () => (await running()) === left)
  for (const number of [...worker.received]) await worker.end(number)
  await until(async () => (await running()) === 0)
})

test('the permits of a crashed thread are released', async () => {
  const { gateway, worker } = await setUp({ maxConcurrentRequests: 12, queueSize: 10 })
  const streams: { thread: string; stream: SseStream }[] = []
  for (let number = 0; number < 12; number++) {
    const stream = open(gateway, number)
    await stream.receive(1)
    streams.push({ stream, thread: stream.headers.get('x-thread') ?? '' })
  }
  const left = streams.filter(({ thread }) => thread === '2')
  expect(left.length).toBeGreaterThan(0)
  expect(left.length).toBeLessThan(12)
  await until(async () => {
    const response = await gateway.send('POST', '/crash/1')
    return ((await response.json()) as { isMeant: boolean }).isMeant
  })
  await reaches(gateway, { inUse: left.length, waiting: 0 })
  const again = Array.from({ length: 12 - left.length }, (_, index) => open(gateway, 100 + index))
  await Promise.all(again.map((stream) => stream.receive(1)))
  expect(await useOf(gateway)).toMatchObject({ inUse: 12, waiting: 0 })
  for (let number = 0; number < 12; number++) await worker.end(number)
  for (let index = 0; index < again.length; index++) await worker.end(100 + index)
  await reaches(gateway, { inUse: 0, waiting: 0 })
})

test('a more urgent request preempts another, on any thread', async () => {
  const scheduler = {
    enabled: true,
    capacity: 8,
    defaultMaxClass: 'system',
    classes: { system: { floor: 0 }, interactive: { floor: 0, share: 0 }, default: { share: 0 } },
  }
  const { gateway, worker } = await setUp({ scheduler }, (number) => number < 8)
  const bulk = Array.from({ length: 8 }, (_, number) => open(gateway, number, { 'x-weir-priority': 'bulk' }))
  await until(() => worker.received.length === 8)
  const urgent = Array.from({ length: 8 }, (_, index) =>
    open(gateway, 100 + index, { 'x-weir-priority': 'interactive' }),
  )
  await Promise.all(bulk.map((stream) => stream.done))
  expect(new Set(bulk.map(({ status }) => status))).toEqual(new Set([503]))
  await Promise.all(urgent.map((stream) => stream.receive(1)))
  const threads = new Set([...bulk, ...urgent].map((stream) => stream.headers.get('x-thread')))
  expect([...threads].sort()).toEqual(['1', '2'])
  for (let index = 0; index < 8; index++) await worker.end(100 + index)
  await Promise.all(urgent.map((stream) => stream.done))
  const { use } = (await (await gateway.get('/limits')).json()) as {
    use: { scheduler: { capacity: number; classes: Record<string, { running: number; waiting: number }> } }
  }
  expect(use.scheduler.capacity).toBe(8)
  expect(use.scheduler.classes.bulk).toEqual({ running: 0, waiting: 0 })
  expect(use.scheduler.classes.interactive).toEqual({ running: 0, waiting: 0 })
})

test('a change of limits applies on both threads, also after one was replaced', async () => {
  const { gateway } = await setUp({})
  const changed = await gateway.send('PATCH', '/limits', { maxConcurrentRequests: 3, queueSize: 7 })
  expect(changed.status).toBe(200)
  await until(async () => {
    const response = await gateway.send('POST', '/crash/1')
    return ((await response.json()) as { isMeant: boolean }).isMeant
  })
  const seen = new Set<string | null>()
  await until(async () => {
    const response = await gateway.get('/limits').catch(() => null)
    if (response === null) return false
    expect(await response.json()).toMatchObject({ limits: { maxConcurrentRequests: 3, queueSize: 7 } })
    return seen.add(response.headers.get('x-thread')).size === 2
  })
})
