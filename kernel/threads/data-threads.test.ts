/** Data threads with real worker_threads: boot, commands, publications, crashes, replacement, metrics, stop. */
import { afterEach, expect, test } from 'vitest'
import type { Script } from '../../test/fixtures/threads/scripted-thread.ts'
import { defineErrors } from '../errors/define-errors.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { createLogger } from '../observe/log.ts'
import { mergeSnapshots } from '../observe/metrics-snapshot.ts'
import { ControlLink } from './control-link.ts'
import { DataThreads, type DataThreadsOptions } from './data-threads.ts'
import { SharedMemory } from './shared-memory.ts'

const errors = defineErrors('threads-test', {
  too_many: { kind: 'conflict', source: 'client', text: (count: number) => `${count} are too many` },
})

interface Report {
  index: number
  event: string
  [field: string]: unknown
}

/** Collects the reports of threads and lets a test wait for one. */
class Reports {
  readonly all: Report[] = []
  #wake: (() => void)[] = []

  add(report: Report): void {
    this.all.push(report)
    for (const wake of this.#wake.splice(0)) wake()
  }

  async wait(matches: (report: Report) => boolean): Promise<Report> {
    for (;;) {
      const found = this.all.find(matches)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => this.#wake.push(resolve))
    }
  }

  of(index: number): string[] {
    return this.all.filter((report) => report.index === index).map((report) => report.event)
  }
}

const open: DataThreads[] = []
afterEach(async () => {
  for (const threads of open.splice(0)) expect(await threads.stop(60_000)).toBe(0)
})

function setUp(options: Partial<DataThreadsOptions> = {}) {
  const log = createLogger({ level: 'silent', thread: 0 })
  const link = new ControlLink({ log })
  const reports = new Reports()
  const exits: number[] = []
  link.onCommand('report', (report) => reports.add(report as Report))
  const threads = new DataThreads({
    link,
    log,
    entry: new URL('../../test/fixtures/threads/scripted-thread.ts', import.meta.url),
    count: 2,
    host: '127.0.0.1',
    port: 4321,
    counters: new SharedArrayBuffer(8),
    shared: new SharedMemory(),
    config: () => ({}),
    onExit: (index) => exits.push(index),
    execArgv: ['--conditions=weir-source', '--no-warnings'],
    ...options,
  })
  open.push(threads)
  const act = (script: Script) => link.publish('script', script)
  return { link, reports, exits, threads, act }
}

async function total(threads: DataThreads, name: string): Promise<number> {
  const family = mergeSnapshots(await threads.collect(null)).find((one) => one.name === name)
  if (family === undefined || family.type === 'histogram') return Number.NaN
  return family.series[0].value
}

test('all threads get the same port, a free one if none is configured', async () => {
  const { threads, reports } = setUp({ port: 0 })
  const { port } = await threads.start()
  expect(port).toBeGreaterThan(0)
  expect(reports.all.map((report) => report.port)).toEqual([port, port])
  expect(reports.all.map(({ index }) => index).sort()).toEqual([1, 2])
  expect(threads.alive).toBe(2)
})

test('a thread that cannot start fails the boot with its reason', async () => {
  const { threads } = setUp({ config: () => ({ failToStart: 2 }) })
  await expect(threads.start()).rejects.toThrow('data thread 2 ended before it listened: no start on purpose')
})

test('a command runs on control and its result is returned', async () => {
  const { threads, link, reports, act } = setUp()
  link.onCommand('double', async (payload) => ({ doubled: (payload as number) * 2 }))
  await threads.start()
  await act({ index: 2, act: 'call', command: 'double', payload: 21 })
  const report = await reports.wait(({ event }) => event === 'result')
  expect(report).toMatchObject({ index: 2, value: { doubled: 42 } })
})

test('a GatewayError of a handler arrives as a GatewayError with all its members', async () => {
  const { threads, link, reports, act } = setUp()
  link.onCommand('refuse', () => {
    throw errors.too_many.with({ param: 'count', headers: ['retry-after', '1'] }, 7)
  })
  await threads.start()
  await act({ index: 1, act: 'call', command: 'refuse' })
  const report = await reports.wait(({ event }) => event === 'error')
  expect(report).toMatchObject({ code: 'too_many', kind: 'conflict', param: 'count' })
  expect(report).toMatchObject({ source: 'client', headers: ['retry-after', '1'] })
  expect((report.error as Error).message).toBe('7 are too many')
  await expect(link.command('refuse', null)).rejects.toBeInstanceOf(GatewayError)
})

test('any other error of a handler arrives with its message only, and an unknown command is an error', async () => {
  const { threads, link, reports, act } = setUp()
  link.onCommand('break', () => {
    throw new TypeError('broken')
  })
  await threads.start()
  await act({ index: 1, act: 'call', command: 'break' })
  const broken = await reports.wait(({ event }) => event === 'error')
  expect(broken.name).toBe('Error')
  expect((broken.error as Error).message).toBe('broken')
  expect((broken.error as Error).stack).not.toContain('data-threads.test')
  await act({ index: 2, act: 'call', command: 'nobody' })
  expect(await reports.wait(({ code }) => code === 'unknown_command')).toMatchObject({ index: 2 })
})

test('publish resolves when every thread has the value, and later threads start with it', async () => {
  const { threads, link, reports, act } = setUp()
  await link.publish('greeting', 'hello')
  await threads.start()
  expect(reports.all.map(({ greeting, version }) => [greeting, version])).toEqual([
    ['hello', 1],
    ['hello', 1],
  ])
  await act({ index: 1, act: 'count' })
  await act({ index: 2, act: 'count' })
  await reports.wait(({ index, event }) => index === 1 && event === 'counted')
  await reports.wait(({ index, event }) => index === 2 && event === 'counted')
  expect(link.replica('script', null)).toMatchObject({ version: 2, current: { index: 2 } })
})

test('a value that cannot be cloned is rejected and changes nothing', async () => {
  const { threads, link } = setUp({ count: 1 })
  await threads.start()
  await expect(link.publish('greeting', () => {})).rejects.toThrow('could not be cloned')
  expect(link.replica('greeting', 'none')).toMatchObject({ version: 0, current: 'none' })
})

for (const act of ['throw', 'reject'] as const) {
  test(`a thread that dies by ${act} closes its server and is replaced with the current replicas; others continue`, async () => {
    const { threads, link, reports, exits, act: script } = setUp()
    await threads.start()
    await link.publish('greeting', 'again')
    await script({ index: 1, act })
    const reborn = await reports.wait(
      ({ index, event, version }) => index === 1 && event === 'start' && version === 1,
    )
    expect(reborn).toMatchObject({ greeting: 'again', port: 4321, script: { act } })
    expect(reports.of(1)).toEqual(['start', 'closed', 'start'])
    expect(reports.of(2)).toEqual(['start'])
    expect(exits).toEqual([1])
    await script({ index: 1, act: 'count' })
    await reports.wait(({ event }) => event === 'counted')
    expect(threads.alive).toBe(2)
  })
}

test('a publication does not wait for a thread that dies during it', async () => {
  const { threads, act } = setUp({ count: 1 })
  await threads.start()
  await Promise.all([act({ index: 1, act: 'throw' }), act({ index: 1, act: 'nothing' })])
})

test('counters of a dead thread are kept, its gauges are not', async () => {
  const { threads, reports, act } = setUp()
  await threads.start()
  await act({ index: 1, act: 'count' })
  await reports.wait(({ event }) => event === 'counted')
  expect([await total(threads, 'acts_total'), await total(threads, 'threads')]).toEqual([1, 2])
  await act({ index: 1, act: 'throw' })
  await reports.wait(({ index, event, script }) => index === 1 && event === 'start' && script !== null)
  expect([await total(threads, 'acts_total'), await total(threads, 'threads')]).toEqual([2, 2])
})

test('drain reaches every thread with its deadline, and afterwards no thread is replaced', async () => {
  const { threads, reports, exits, act } = setUp()
  await threads.start()
  await threads.drain(500, 0)
  expect(reports.all.filter(({ event }) => event === 'drain')).toMatchObject([
    { deadlineMs: 500 },
    { deadlineMs: 500 },
  ])
  await act({ index: 2, act: 'throw' })
  expect(await threads.stop(60_000)).toBe(0)
  expect(exits.sort()).toEqual([1, 2])
  expect(reports.of(1)).toEqual(['start', 'drain', 'stop', 'closed'])
  expect(reports.all.filter(({ event }) => event === 'start')).toHaveLength(2)
})

test('stop resolves when every thread has ended, also if called twice', async () => {
  const { threads, exits } = setUp()
  await threads.start()
  expect(await threads.stop(60_000)).toBe(0)
  expect(await threads.stop(60_000)).toBe(0)
  expect(exits.sort()).toEqual([1, 2])
  await expect(threads.collect(null)).resolves.toEqual([[]])
})
