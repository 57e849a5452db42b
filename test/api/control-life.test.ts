/** The process as a whole: errors that do not end it, errors and signals that do, and what the shutdown waits for. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FAULT = fileURLToPath(new URL('../fixtures/fault-plugin.ts', import.meta.url))

interface Running {
  readonly child: ChildProcess
  readonly url: string
  readonly lines: string[]
  readonly closed: Promise<unknown[]>
  post(path: string): Promise<Response>
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** Starts a gateway in a separate process, because the tests signal and crash it. */
async function start(kernel: object = {}): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-life-'))
  const file = join(folder, 'weir.json')
  const config = {
    kernel: {
      port: 0,
      threads: 1,
      log: { access: false },
      shutdown: { graceMs: 10_000, settleMs: 0 },
      ...kernel,
    },
    plugins: { health: {}, metrics: { port: 0 }, fault: { $path: FAULT } },
  }
  writeFileSync(file, JSON.stringify(config))
  const command = [join(ROOT, 'plugins/cli.ts'), 'serve', '--config', file]
  const child = spawn(process.execPath, ['--conditions=weir-source', '--no-warnings', ...command])
  const closed = once(child, 'close')
  cleanups.push(async () => {
    child.kill('SIGKILL')
    await closed
    rmSync(folder, { recursive: true, force: true })
  })
  const lines: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        const found = /API\s+(http:\/\/\S+)/.exec(line) ?? / is ready .*?(http:\/\/\S+)/.exec(line)
        if (found !== null) resolve(found[1])
      })
    }
    void closed.then(() => reject(new Error(lines.join('\n'))))
  })
  return { child, url, lines, closed, post: (path) => fetch(url + path, { method: 'POST' }) }
}

const metrics = async ({ post }: Running) =>
  (await (await post('/read-metrics')).json()) as Record<string, number[]>
const countOf = (running: Running, text: string) => running.lines.filter((line) => line.includes(text)).length

describe('an uncaught error on the control thread', () => {
  test.each(
    [0, 1].flatMap((threads) =>
      ['timer', 'forgotten', 'emitter', 'spread', 'odd'].map((kind) => [kind, threads] as const),
    ),
  )(
    '%s with %i data threads: it is logged, requests finish, and the exit code is 1',
    async (kind, threads) => {
      const running = await start({ threads })
      const open = running.post('/wait-for-drain')
      await expect.poll(async () => (await metrics(running)).fault_waiting).toEqual([1])
      expect((await running.post(`/fault/${kind}`)).status).toBe(200)
      await expect.poll(() => countOf(running, '"uncaught error on the control thread"')).toBe(1)
      await expect.poll(() => countOf(running, 'shutting down')).toBe(1)
      expect((await open).status).toBe(200)
      expect((await running.closed)[0]).toBe(1)
      expect(countOf(running, 'shut down after an uncaught error on the control thread')).toBe(1)
    },
  )

  test('errors of a command are caught and do not end the process', async () => {
    const running = await start()
    for (const kind of ['handler', 'rejection'])
      expect((await running.post(`/fault/${kind}`)).status).toBe(500)
    expect((await fetch(`${running.url}/liveness`)).status).toBe(200)
    running.child.kill('SIGTERM')
    expect((await running.closed)[0]).toBe(0)
  })
})

test('probes are omitted from the access log by default', async () => {
  const probeLines = async (probes: object) => {
    const running = await start({ log: { access: true, ...probes } })
    for (const path of ['/liveness', '/readiness', '/health', '/nowhere']) await fetch(running.url + path)
    await expect.poll(() => countOf(running, '"path":"/nowhere"')).toBe(1)
    return ['/liveness', '/readiness', '/health'].map((path) => countOf(running, `"path":"${path}"`))
  }
  expect(await probeLines({})).toEqual([0, 0, 0])
  expect(await probeLines({ probes: true })).toEqual([1, 1, 1])
})

describe('signals', () => {
  test('HUP, USR1 and USR2 do not end the process; QUIT shuts it down', async () => {
    const running = await start()
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
      running.child.kill(signal)
      await expect.poll(() => countOf(running, signal)).toBeGreaterThan(0)
    }
    expect((await fetch(`${running.url}/liveness`)).status).toBe(200)
    expect(countOf(running, 'Debugger')).toBe(0)
    running.child.kill('SIGQUIT')
    expect((await running.closed).slice(0, 2)).toEqual([0, null])
  })
})

describe('shutdown', () => {
  test('can be requested by a plugin, and waits for background work', async () => {
    const running = await start()
    await running.post('/background/begin')
    expect((await metrics(running)).weir_background_work_active).toEqual([1])
    const kept = await running.post('/shutdown')
    expect(kept.status).toBe(200)
    await expect.poll(() => countOf(running, 'requested by a test')).toBe(1)
    await expect
      .poll(() =>
        fetch(`${running.url}/liveness`).then(
          () => 'open',
          () => 'closed',
        ),
      )
      .toBe('closed')
    expect([running.child.exitCode, countOf(running, 'requested again')]).toEqual([null, 0])
    running.child.kill('SIGTERM')
    expect((await running.closed)[0]).toBe(0)
  })

  test('cancels background work that outlives the grace period', async () => {
    const running = await start({ shutdown: { graceMs: 300, settleMs: 0 } })
    await running.post('/background/begin')
    await running.post('/background/fail')
    expect((await metrics(running)).weir_background_work_failed_total).toEqual([1])
    await running.post('/shutdown')
    expect((await running.closed)[0]).toBe(0)
    expect([
      countOf(running, 'work was cancelled'),
      countOf(running, 'work cancelled at the end of the grace period'),
    ]).toEqual([1, 1])
  })
})
