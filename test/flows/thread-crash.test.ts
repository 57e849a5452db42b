/** One of two data threads ends with an uncaught error: the other thread and the process continue. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import {
  chatChunks,
  jsonAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'

const CHAT = 'POST /v1/chat/completions'
const crash = { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) }
const chunks = chatChunks('test-model', ['a', 'b', 'c', 'd'])
const body = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], stream: true }

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

async function setUp(): Promise<{ gateway: BuiltGateway; worker: ScriptedWorker; finish: () => void }> {
  const release = Promise.withResolvers<void>()
  const worker = await startScriptedWorker()
  workers.push(worker)
  worker.script(CHAT, sseAnswer([...chunks.slice(0, 3), { until: release.promise }, ...chunks.slice(3)]))
  const gateway = await startBuiltGateway({
    kernel: { log: { level: 'error' } },
    plugins: { crash },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
  })
  return { gateway, worker, finish: release.resolve }
}

interface ThreadStream {
  readonly thread: number
  readonly stream: SseStream
}

/** Opens streams until each of the two threads has `each`; the kernel spreads connections at random. */
async function openOnBoth(gateway: BuiltGateway, each: number): Promise<ThreadStream[]> {
  const open: ThreadStream[] = []
  const countOf = (thread: number) => open.filter((one) => one.thread === thread).length
  while (countOf(1) < each || countOf(2) < each) {
    if (open.length > 200) throw new Error('200 connections and one thread got none')
    const stream = openSse(`${gateway.url}/v1/chat/completions`, { body })
    await stream.receive(3)
    open.push({ thread: Number(stream.headers.get('x-thread')), stream })
  }
  return open
}

/** Retries until a connection reaches that thread. */
async function crashThread(gateway: BuiltGateway, thread: number): Promise<void> {
  await until(async () => {
    const response = await gateway.send('POST', `/crash/${thread}`)
    return ((await response.json()) as { isMeant: boolean }).isMeant
  })
}

async function respondingThreads(gateway: BuiltGateway): Promise<number[]> {
  const seen = new Set<number>()
  // A connection in the queue of the dying thread is reset.
  const send = async () => {
    const response = await gateway.get('/thread').catch(() => null)
    if (response !== null) seen.add(((await response.json()) as { thread: number }).thread)
  }
  await Promise.all(Array.from({ length: 40 }, send))
  return [...seen].sort()
}

/** Metrics that must never decrease. */
const totals = (gateway: BuiltGateway) => gateway.metrics('counter', 'histogram')

function decreased(before: Map<string, number>, after: Map<string, number>): string[] {
  return [...before]
    .filter(([name, value]) => (after.get(name) ?? 0) < value)
    .map(([name, value]) => `${name}: ${value} to ${after.get(name)}`)
}

for (const dying of [1, 2]) {
  test(`a crash of data thread ${dying} ends its own streams only, and the thread is replaced`, async () => {
    const { gateway, worker, finish } = await setUp()
    const streams = await openOnBoth(gateway, 3)
    const lost = streams.filter(({ thread }) => thread === dying)
    const kept = streams.filter(({ thread }) => thread !== dying)
    expect((await gateway.loads())[worker.url]).toBe(streams.length)
    const before = await totals(gateway)
    expect(before.size).toBeGreaterThan(20)

    await crashThread(gateway, dying)
    await Promise.all(lost.map(({ stream }) => stream.done))
    for (const { stream } of lost) expect([stream.isWhole, stream.events.length]).toEqual([false, 3])
    // Its requests are no longer counted by the gateway, and are closed at the worker.
    await until(async () => (await gateway.loads())[worker.url] === kept.length)
    await until(() => worker.requestsTo(CHAT).filter((request) => request.isAborted).length === lost.length)
    const afterwards = await totals(gateway)
    expect(decreased(before, afterwards)).toEqual([])

    await until(async () => (await respondingThreads(gateway)).join() === '1,2')
    expect(decreased(afterwards, await totals(gateway))).toEqual([])
    finish()
    await Promise.all(kept.map(({ stream }) => stream.done))
    for (const { stream } of kept) {
      expect(stream.isWhole).toBe(true)
      expect(stream.events.map(({ data }) => data)).toEqual(chunks)
    }
    await until(async () => (await gateway.loads())[worker.url] === 0)
    expect(gateway.command.hasEnded).toBe(false)
  })
}

test('while control is blocked, requests and probes are served, and metrics afterwards', async () => {
  const { gateway, worker } = await setUp()
  worker.script(CHAT, jsonAnswer({ choices: [] }))
  let isBlocked = true
  const blocking = gateway.send('POST', '/block-control/3000').finally(() => {
    isBlocked = false
  })
  const outcomes: string[] = []
  let metrics: Promise<unknown> | null = null
  while (isBlocked) {
    const responses = await Promise.all([
      gateway.send('POST', '/v1/chat/completions', { ...body, stream: false }),
      gateway.get('/readiness'),
      gateway.get('/liveness'),
    ])
    await Promise.all(responses.map((response) => response.text()))
    outcomes.push(responses.map(({ status }) => status).join())
    metrics ??= gateway.metrics()
  }
  expect(new Set(outcomes)).toEqual(new Set(['200,200,200']))
  expect((await blocking).status).toBe(200)
  expect(await metrics).toBeInstanceOf(Map)
})

test('a replacement thread knows old and new workers, and its counters continue from those of its predecessor', async () => {
  const { gateway, worker, finish } = await setUp()
  finish()
  const chatThreads = async (model: string) => {
    const seen = new Set<string | null>()
    await until(async () => {
      const response = await gateway.send('POST', '/v1/chat/completions', { ...body, model, stream: false })
      await response.text()
      expect(response.status).toBe(200)
      return seen.add(response.headers.get('x-thread')).size === 2
    })
  }
  worker.script(CHAT, jsonAnswer({ choices: [] }))
  await chatThreads('test-model')
  const requestsTo = (samples: Map<string, number>) =>
    samples.get('weir_http_requests_total{method="POST",path="/v1/chat/completions"}') ?? 0
  const before = requestsTo(await totals(gateway))
  expect(before).toBe(worker.requestsTo(CHAT).length)

  await crashThread(gateway, 1)
  await gateway.command.line(/data thread ended unexpectedly/)
  await until(async () => (await respondingThreads(gateway)).join() === '1,2')
  await chatThreads('test-model')
  const later = await startScriptedWorker({ models: ['later'] })
  workers.push(later)
  const spec = { url: later.url, runtime_type: 'sglang', models: [{ id: 'later' }] }
  expect((await gateway.send('POST', '/workers', spec)).status).toBe(202)
  await until(async () => {
    const { workers: listed } = (await (await gateway.get('/workers')).json()) as {
      workers: { status: string }[]
    }
    return listed.length === 2 && listed.every(({ status }) => status === 'ready')
  })
  await chatThreads('later')
  const all = worker.requestsTo(CHAT).length + later.requestsTo(CHAT).length
  expect(requestsTo(await totals(gateway))).toBe(all)
})
