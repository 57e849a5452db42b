import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type JobContext, JobRunner } from './jobs.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
const limits = { maxQueued: 3, maxRunning: 2, failedLifeMs: 300_000, sweepMs: 60_000 }
const URL_A = 'http://a:1'

let expired: string[]
let jobs: JobRunner

beforeEach(() => {
  vi.useFakeTimers()
  expired = []
  jobs = new JobRunner(silent, (url) => expired.push(url), limits)
})
afterEach(() => {
  jobs.stop()
  vi.useRealTimers()
})

const add = (url: string, work: (job: JobContext) => Promise<void>, more = {}) =>
  jobs.submit({ kind: 'AddWorker', url, budgetMs: 60_000, ...more }, work)
const never = () => new Promise<void>(() => {})
const settle = () => vi.advanceTimersByTimeAsync(0)

describe('status', () => {
  test('a job is processing while it runs and leaves no status when it succeeds', async () => {
    const gate = Promise.withResolvers<void>()
    add(URL_A, () => gate.promise)
    expect(jobs.status(URL_A)).toMatchObject({
      kind: 'AddWorker',
      url: URL_A,
      state: 'processing',
      message: null,
    })
    gate.resolve()
    await settle()
    expect(jobs.status(URL_A)).toBeUndefined()
  })

  test('a failure is listed for five minutes', async () => {
    add(URL_A, () => Promise.reject(new Error('no answer')))
    await settle()
    expect(jobs.status(URL_A)).toMatchObject({ state: 'failed', message: 'no answer' })
    await vi.advanceTimersByTimeAsync(240_000)
    expect(jobs.status(URL_A)).toBeDefined()
    await vi.advanceTimersByTimeAsync(120_000)
    expect(jobs.status(URL_A)).toBeUndefined()
    expect(expired).toEqual([URL_A])
  })

  test('the status of a URL is that of its newest job', async () => {
    add(URL_A, never)
    jobs.submit({ kind: 'UpdateWorker', url: URL_A, budgetMs: 1_000 }, () =>
      Promise.reject(new Error('late')),
    )
    await settle()
    expect(jobs.status(URL_A)).toMatchObject({ kind: 'UpdateWorker', state: 'failed' })
  })

  test('a job that fails after a newer one has succeeded is still reported', async () => {
    const gate = Promise.withResolvers<void>()
    add(URL_A, () => gate.promise)
    jobs.submit({ kind: 'UpdateWorker', url: URL_A, budgetMs: 1_000 }, async () => {})
    await settle()
    expect(jobs.status(URL_A)).toMatchObject({ kind: 'AddWorker', state: 'processing' })
    gate.reject(new Error('changed'))
    await settle()
    expect(jobs.status(URL_A)).toMatchObject({ kind: 'AddWorker', state: 'failed', message: 'changed' })
  })

  test('a job that exceeds its budget fails', async () => {
    add(URL_A, (job) => job.wait(120_000))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(jobs.status(URL_A)).toMatchObject({
      state: 'failed',
      message: 'the change was not finished within 60 s',
    })
  })

  test('a cancelled job stops and leaves no status', async () => {
    let reason: unknown
    add(URL_A, async (job) => {
      await job.wait(1_000).catch((error: unknown) => {
        reason = error
        throw error
      })
    })
    jobs.cancel(URL_A, 'AddWorker')
    await settle()
    expect(reason).toBeInstanceOf(Error)
    expect(jobs.status(URL_A)).toBeUndefined()
    expect(jobs.isUnfinished(URL_A, 'AddWorker')).toBe(false)
  })
})

test('a problem is logged immediately, and again at growing intervals while it lasts', async () => {
  const startMs = Date.now()
  const told: number[] = []
  const log = { ...silent, warn: () => void told.push(Math.round((Date.now() - startMs) / 1_000)) }
  const watched = new JobRunner(log, () => {}, limits)
  const forEver = { kind: 'AddWorker', url: URL_A, budgetMs: Number.POSITIVE_INFINITY } as const
  watched.submit(forEver, async (job) => {
    for (;;) {
      job.note('connection refused')
      await job.wait(5_000)
    }
  })
  await vi.advanceTimersByTimeAsync(7_200_000)
  // In two hours, of 1,440 attempts.
  expect(told).toHaveLength(11)
  const pauses = told.slice(1).map((at, place) => at - told[place])
  expect(told[0]).toBe(0)
  expect(pauses.slice(0, 3)).toEqual([15, 60, 240])
  expect(pauses.slice(3).every((pause) => pause >= 900 && pause <= 905)).toBe(true)
  expect(watched.status(URL_A)).toMatchObject({ state: 'processing', message: 'connection refused' })
  watched.stop()
})

describe('permits', () => {
  test('a full queue rejects jobs immediately, and exempt jobs are still accepted', async () => {
    for (let count = 0; count < 5; count++) add(`http://w${count}:1`, never)
    expect(jobs.status('http://w1:1')).toMatchObject({ state: 'processing' })
    expect(jobs.status('http://w4:1')).toMatchObject({ state: 'pending' })
    expect(() => add('http://w5:1', never)).toThrow(
      expect.objectContaining({ code: 'job_queue_full', status: 503, headers: ['retry-after', '1'] }),
    )
    add('http://w5:1', never, { isExempt: true })
    expect(jobs.status('http://w5:1')).toMatchObject({ state: 'pending' })
  })

  test('a waiting job releases its permit, and gets one again before new jobs', async () => {
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    add('http://w0:1', async (job) => {
      await job.wait(10)
      order.push('back')
    })
    add('http://w1:1', () => gate.promise)
    add('http://w2:1', never)
    add('http://w3:1', async () => {
      order.push('new')
    })
    expect(jobs.status('http://w2:1')).toMatchObject({ state: 'processing' })
    expect(jobs.status('http://w3:1')).toMatchObject({ state: 'pending' })
    await vi.advanceTimersByTimeAsync(10)
    expect(order).toEqual([])
    gate.resolve()
    await settle()
    expect(order).toEqual(['back', 'new'])
  })

  test('any number of jobs may wait at the same time', async () => {
    let finished = 0
    for (let count = 0; count < 5_000; count++) {
      add(`http://w${count}:1`, async (job) => {
        await job.wait(5)
        finished += 1
      })
    }
    await vi.advanceTimersByTimeAsync(5)
    await settle()
    expect(finished).toBe(5_000)
  })
})
