/** Graceful shutdown: what works while the gateway drains, what is truncated, and how long it takes. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { freePort, isFree } from '../support/free-port.ts'
import {
  chatChunks,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse, type SseStream, sip } from '../support/sse-client.ts'

const CHAT = 'POST /v1/chat/completions'
/** How much later than its time a busy machine does something: the grace periods and settle times that do not apply are longer. */
const LATE_MS = 29_000
const chunks = chatChunks('test-model', ['a', 'b', 'c', 'd'])
const body = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], stream: true }

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

interface Setup {
  readonly gateway: BuiltGateway
  readonly worker: ScriptedWorker
  /** Lets the worker finish its streams. */
  readonly finish: () => void
}

async function setUp(
  shutdown: { graceMs: number; settleMs: number },
  kernel: object = {},
  plugins = {},
): Promise<Setup> {
  const release = Promise.withResolvers<void>()
  const worker = await startScriptedWorker()
  workers.push(worker)
  worker.script(CHAT, sseAnswer([...chunks.slice(0, 2), { until: release.promise }, ...chunks.slice(2)]))
  const gateway = await startBuiltGateway({
    kernel: { shutdown, ...kernel },
    plugins,
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
  })
  return { gateway, worker, finish: release.resolve }
}

async function openStream(gateway: BuiltGateway): Promise<SseStream> {
  const stream = openSse(`${gateway.url}/v1/chat/completions`, { body })
  await stream.receive(2)
  return stream
}

async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  } finally {
    socket.destroy()
  }
}

interface KeptConnection {
  readonly socket: Socket
  /** Everything received since the last request. */
  text(): string
  /** Sends a request and waits for `awaited` in the response. */
  send(line: string, content: string, awaited: string): Promise<string>
}

/** Opens a connection that has served one request. */
async function keptConnection(port: number): Promise<KeptConnection> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let text = ''
  socket.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  const send = async (line: string, content: string, awaited: string) => {
    text = ''
    socket.write(`${line} HTTP/1.1\r\nhost: x\r\ncontent-length: ${content.length}\r\n\r\n${content}`)
    await until(() => text.includes(awaited))
    return text
  }
  await send('GET /liveness', '', 'OK')
  return { socket, text: () => text, send }
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('SIGTERM', () => {
  test('readiness fails at once, liveness succeeds, streams complete, connections are refused after the settle time, and the exit code is 0', async () => {
    const settleMs = 6_000
    const { gateway, finish } = await setUp({ graceMs: 60_000, settleMs })
    const streams = await Promise.all(Array.from({ length: 6 }, () => openStream(gateway)))
    expect((await gateway.get('/readiness')).status).toBe(200)

    const signalledAtMs = gateway.command.signal('SIGTERM')
    await until(async () => (await gateway.get('/readiness')).status === 503)
    // Repeated, because each probe may reach either thread.
    for (let probes = 0; probes < 8; probes += 1) {
      const readiness = await gateway.get('/readiness')
      expect([readiness.status, await readiness.json()]).toMatchObject([
        503,
        { status: 'not ready', reason: 'draining' },
      ])
      const liveness = await gateway.get('/liveness')
      expect([liveness.status, await liveness.text()]).toEqual([200, 'OK'])
    }
    // Requests of a balancer that has not noticed yet are still served.
    const late = await openStream(gateway)
    expect(performance.now() - signalledAtMs).toBeLessThan(settleMs)

    await until(() => isRefused(gateway.port))
    const refusedAfterMs = performance.now() - signalledAtMs
    // A busy process starts a timer with a time of its clock that is past.
    expect(refusedAfterMs).toBeGreaterThan(settleMs * 0.9)
    expect(refusedAfterMs).toBeLessThan(settleMs + LATE_MS)

    expect(gateway.command.hasEnded).toBe(false)
    finish()
    for (const stream of [...streams, late]) {
      await stream.done
      expect(stream.isWhole).toBe(true)
      expect(stream.events.map(({ data }) => data)).toEqual(chunks)
    }
    const finishedAtMs = performance.now()
    const end = await gateway.command.ended
    expect([end.code, end.signal]).toEqual([0, null])
    expect(end.atMs - finishedAtMs).toBeLessThan(LATE_MS)
  })

  test('responses and streams announce the close of kept connections, and every stream is complete', async () => {
    const { gateway, finish } = await setUp({ graceMs: 20_000, settleMs: 100 })
    const sockets = await Promise.all([keptConnection(gateway.port), keptConnection(gateway.port)])
    const stream = await openStream(gateway)
    gateway.command.signal('SIGTERM')
    await until(() => isRefused(gateway.port))

    const [whole, streamed] = sockets
    const closed = once(whole.socket, 'close')
    expect(await whole.send('GET /liveness', '', 'OK')).toMatch(/\r\nconnection: close\r\n/i)
    await closed
    const response = await streamed.send('POST /v1/chat/completions', JSON.stringify(body), '"a"')
    expect(response.slice(0, response.indexOf('\r\n\r\n'))).toMatch(/\r\nconnection: close$/im)
    finish()
    await until(() => streamed.text().endsWith('0\r\n\r\n'))
    expect(streamed.text().match(/connection/gi)).toHaveLength(1)
    streamed.socket.destroy()
    await stream.done
    expect([stream.isWhole, stream.events.length]).toEqual([true, chunks.length])
    expect((await gateway.command.ended).code).toBe(0)
  })

  test('a slow reader receives its complete stream before the gateway exits', async () => {
    const { gateway, worker } = await setUp({ graceMs: 20_000, settleMs: 0 })
    const events = Array.from({ length: 200 }, (_, place) => `${place} ${'x'.repeat(65_536)}`)
    worker.script(CHAT, sseAnswer([...events, '[DONE]']))
    const streams = Array.from({ length: 4 }, () => openSse(`${gateway.url}/v1/chat/completions`, { body }))
    await Promise.all(streams.map((stream) => stream.receive(1)))
    for (const stream of streams) stream.pause()
    gateway.command.signal('SIGTERM')
    await until(() => isRefused(gateway.port))
    await Promise.all(streams.map((stream) => sip(stream, 60)))
    for (const stream of streams) {
      expect([stream.isWhole, stream.events.length]).toEqual([true, events.length + 1])
    }
    expect((await gateway.command.ended).code).toBe(0)
  })

  test('streams that outlast the grace period are truncated, their worker request is cancelled, and the exit is clean', async () => {
    const graceMs = 800
    const { gateway, worker } = await setUp({ graceMs, settleMs: 100 })
    const streams = await Promise.all(Array.from({ length: 4 }, () => openStream(gateway)))
    const signalledAtMs = gateway.command.signal('SIGTERM')
    await Promise.all(streams.map(({ done }) => done))
    const cutAfterMs = performance.now() - signalledAtMs
    expect(cutAfterMs).toBeGreaterThan(graceMs - 50)
    expect(cutAfterMs).toBeLessThan(graceMs + LATE_MS)
    expect(streams.map(({ isWhole }) => isWhole)).toEqual([false, false, false, false])
    const end = await gateway.command.ended
    expect([end.code, end.signal]).toEqual([0, null])
    expect(end.atMs - signalledAtMs).toBeLessThan(graceMs + LATE_MS)
    expect(end.stdout).toContain('requests cut at the end of the grace period')
    const requests = worker.requestsTo(CHAT)
    await Promise.all(requests.map(({ closed }) => closed))
    expect(requests.every(({ isAborted }) => isAborted)).toBe(true)
  })

  for (const threads of [2, 0]) {
    test(`a second signal ends the gateway at once, with ${threads} data threads`, async () => {
      const { gateway } = await setUp({ graceMs: 60_000, settleMs: 30_000 }, { threads })
      const stream = await openStream(gateway)
      gateway.command.signal('SIGTERM')
      await until(async () => (await gateway.get('/readiness')).status === 503)
      const secondAtMs = gateway.command.signal('SIGTERM')
      const end = await gateway.command.ended
      expect(end.atMs - secondAtMs).toBeLessThan(LATE_MS)
      expect([end.code, end.signal]).toEqual([0, null])
      await stream.done
      expect(stream.isWhole).toBe(false)
    })
  }
})

describe('SIGINT', () => {
  for (const threads of [2, 0]) {
    test(`without requests in flight ends at once whatever the settle time, with ${threads} data threads`, async () => {
      const [port, metricsPort] = [await freePort(), await freePort()]
      const metrics = { port: metricsPort }
      const { gateway } = await setUp({ graceMs: 180_000, settleMs: 30_000 }, { threads, port }, { metrics })
      // An idle keep-alive connection does not delay the exit.
      await (await fetch(`${gateway.url}/liveness`)).text()
      const signalledAtMs = gateway.command.signal('SIGINT')
      const end = await gateway.command.ended
      expect([end.code, end.signal]).toEqual([0, null])
      expect(end.atMs - signalledAtMs).toBeLessThan(LATE_MS)
      expect(isAlive(gateway.command.pid)).toBe(false)
      expect([await isFree(port), await isFree(metricsPort)]).toEqual([true, true])
    })
  }

  test.each([0, 1])(
    'a plugin whose stop never ends and that leaves a timer does not keep the process, with %i threads',
    async (threads) => {
      const path = join(makeFolder(), 'stuck.mjs')
      writeFileSync(
        path,
        `export default {
        manifest: { name: 'stuck', version: '1.0.0', description: 'Never stops.', config: { type: 'object' } },
        register: () => ({ start: () => void setInterval(() => {}, 1000), stop: () => new Promise(() => {}) }),
      }`,
      )
      const { gateway } = await setUp(
        { graceMs: 1_000, settleMs: 0 },
        { threads, lifecycle: { stepMs: 2_000 } },
        { stuck: { $path: path } },
      )
      gateway.command.signal('SIGTERM')
      const { code, signal } = await gateway.command.ended
      expect([code, signal]).toEqual([0, null])
      expect(gateway.command.lines.join('\n')).toContain('plugin failed during shutdown')
    },
  )

  test.each([
    ['SIGINT', 40_000],
    ['SIGQUIT', 0],
  ] as const)('%s lets a running stream finish', async (signal, settleMs) => {
    const { gateway, finish } = await setUp({ graceMs: 90_000, settleMs })
    const stream = await openStream(gateway)
    const signalledAtMs = gateway.command.signal(signal)
    await until(() => isRefused(gateway.port))
    expect(performance.now() - signalledAtMs).toBeLessThan(LATE_MS)
    finish()
    await stream.done
    expect(stream.events.map(({ data }) => data)).toEqual(chunks)
    expect((await gateway.command.ended).code).toBe(0)
  })
})
