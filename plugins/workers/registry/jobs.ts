/** Background jobs behind the 202 responses of the worker routes: a bounded queue with one status per worker URL. */

import type { Logger } from '#kernel'
import { MAX_TIMER_MS, messageOf } from '#kernel'
import { workerErrors } from './errors.ts'

export type JobKind = 'AddWorker' | 'UpdateWorker' | 'RemoveWorker'

export interface JobStatus {
  readonly kind: JobKind
  /** As in the options. */
  readonly url: string
  readonly state: 'pending' | 'processing' | 'failed'
  /** Why it failed, or what currently blocks it; null if neither. */
  readonly message: string | null
  /** Unix seconds of the last change of state. */
  readonly atSec: number
}

/** Passed to a running job. */
export interface JobContext {
  /** Aborted when the job is cancelled or exceeds its time limit. */
  readonly signal: AbortSignal
  /** Reports what blocks the job: immediately in its status, in the log at growing intervals. */
  note(problem: string): void
  /** Waits without occupying one of the `maxRunning` slots. @throws the signal's reason */
  wait(waitMs: number): Promise<void>
}

export interface JobOptions {
  readonly kind: JobKind
  /** Worker URL in the normal form of `workerKey`. The status of its newest job is shown. */
  readonly url: string
  /** Time limit of the whole job from its start, milliseconds; Infinity for none. */
  readonly budgetMs: number
  /** Not subject to the queue limit: start-up work, which no client can send again. */
  readonly isExempt?: boolean
}

export interface JobLimits {
  readonly maxQueued: number
  readonly maxRunning: number
  /** How long the status of a failed job is kept, milliseconds. */
  readonly failedLifeMs: number
  readonly sweepMs: number
}

/** Defaults. */
export const JOB_LIMITS: JobLimits = Object.freeze({
  maxQueued: 1000,
  maxRunning: 200,
  failedLifeMs: 300_000,
  sweepMs: 60_000,
})

/** An unreachable worker is logged immediately, then after 15 s, 1 min and 4 min, then every 15 min. */
const FIRST_NOTE_PAUSE_MS = 15_000
const MAX_NOTE_PAUSE_MS = 900_000

/** Jobs take well under a second each. */
const RETRY_SOON = Object.freeze({ headers: ['retry-after', '1'] })

interface Job {
  readonly options: JobOptions
  readonly work: (context: JobContext) => Promise<void>
  readonly controller: AbortController
  status: JobStatus
  hasSlot: boolean
  /** `performance.now()` of the next log line about what blocks the job, and the interval after it. */
  notedUntilMs: number
  notePauseMs: number
}

export class JobRunner {
  readonly #limits: JobLimits
  readonly #log: Logger
  readonly #onExpired: (url: string) => void
  /** Newest job of each URL, until it succeeds or its failure expires. */
  readonly #newest = new Map<string, Job>()
  /** Queued and running jobs by URL, so that a burst of registrations does not scan the whole queue. */
  readonly #unfinished = new Map<string, Set<Job>>()
  readonly #queue: Job[] = []
  /** Jobs whose wait is over and which need a slot again; they go before new ones. */
  readonly #returning: (() => void)[] = []
  /** Opened by the first failure, since only failed jobs expire. */
  #sweeper: NodeJS.Timeout | undefined
  #running = 0
  #isStarting = false

  /** @param onExpired called with the URL of each failed job whose status expires */
  constructor(log: Logger, onExpired: (url: string) => void, limits: JobLimits = JOB_LIMITS) {
    this.#limits = limits
    this.#log = log
    this.#onExpired = onExpired
  }

  /** @throws job_queue_full (503) if the queue has no room for one more job */
  requireRoom(): void {
    if (this.#running < this.#limits.maxRunning || this.#queue.length < this.#limits.maxQueued) return
    throw workerErrors.job_queue_full.with(RETRY_SOON, this.#queue.length)
  }

  /**
   * Queues a job; it starts at once if a slot is free. The message of an exception becomes that of its status.
   * @throws job_queue_full (503)
   */
  submit(options: JobOptions, work: (context: JobContext) => Promise<void>): void {
    if (options.isExempt !== true) this.requireRoom()
    const { kind, url } = options
    const job: Job = {
      options,
      work,
      controller: new AbortController(),
      status: { kind, url, state: 'pending', message: null, atSec: nowSec() },
      hasSlot: false,
      notedUntilMs: 0,
      notePauseMs: FIRST_NOTE_PAUSE_MS,
    }
    this.#newest.set(url, job)
    this.#unfinished.set(url, (this.#unfinished.get(url) ?? new Set()).add(job))
    this.#queue.push(job)
    this.#startNext()
  }

  /** Status of the URL's newest job that neither succeeded nor was cancelled; undefined if there is none. */
  status(url: string): JobStatus | undefined {
    const job = this.#newest.get(url) ?? this.#unfinished.get(url)?.values().next().value
    return job?.status
  }

  /** True while a job of the kind is queued or running. */
  isUnfinished(url: string, kind: JobKind): boolean {
    return this.#unfinishedOf(url, kind).length > 0
  }

  /** Cancels the URL's jobs of one kind; they leave no status. */
  cancel(url: string, kind: JobKind): void {
    for (const job of this.#unfinishedOf(url, kind)) this.#cancelJob(job)
  }

  /** Drops the status of the URL's newest job if it failed. */
  forget(url: string): void {
    const job = this.#newest.get(url)
    if (job?.status.state === 'failed') this.#newest.delete(url)
  }

  /** Cancels all jobs. Idempotent. */
  stop(): void {
    clearInterval(this.#sweeper)
    for (const job of [...this.#unfinished.values()].flatMap((jobs) => [...jobs])) this.#cancelJob(job)
  }

  #unfinishedOf(url: string, kind: JobKind): Job[] {
    return [...(this.#unfinished.get(url) ?? [])].filter((job) => job.options.kind === kind)
  }

  /** Not reentrant: a job that waits immediately calls this again while the loop runs. */
  #startNext(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    while (this.#running < this.#limits.maxRunning) {
      const back = this.#returning.shift()
      if (back !== undefined) {
        back()
        continue
      }
      const job = this.#queue.shift()
      if (job === undefined) break
      this.#takeSlot(job)
      void this.#run(job)
    }
    this.#isStarting = false
  }

  async #run(job: Job): Promise<void> {
    const { budgetMs } = job.options
    job.status = { ...job.status, state: 'processing', atSec: nowSec() }
    const timer = Number.isFinite(budgetMs)
      ? setTimeout(
          () => job.controller.abort(workerErrors.job_timed_out(budgetMs / 1000)),
          Math.min(budgetMs, MAX_TIMER_MS),
        ).unref()
      : undefined
    try {
      await job.work({
        signal: job.controller.signal,
        note: (problem) => this.#note(job, problem),
        wait: (waitMs) => this.#wait(job, waitMs),
      })
      if (this.#newest.get(job.options.url) === job) this.#newest.delete(job.options.url)
    } catch (error) {
      if (this.#unfinished.get(job.options.url)?.has(job) === true) this.#fail(job, error)
    } finally {
      clearTimeout(timer)
      this.#dropUnfinished(job)
      this.#releaseSlot(job)
    }
  }

  #note(job: Job, problem: string): void {
    job.status = { ...job.status, message: problem, atSec: nowSec() }
    const nowMs = performance.now()
    if (nowMs < job.notedUntilMs) return
    job.notedUntilMs = nowMs + job.notePauseMs
    job.notePauseMs = Math.min(MAX_NOTE_PAUSE_MS, job.notePauseMs * 4)
    this.#log.warn({ job: job.options.kind, worker: job.options.url, reason: problem }, 'worker unreachable')
  }

  #fail(job: Job, error: unknown): void {
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#limits.sweepMs).unref()
    const message = messageOf(error)
    job.status = { ...job.status, state: 'failed', message, atSec: nowSec() }
    if (!this.#newest.has(job.options.url)) this.#newest.set(job.options.url, job)
    this.#log.warn({ job: job.options.kind, worker: job.options.url, reason: message }, 'worker job failed')
  }

  #dropUnfinished(job: Job): void {
    const { url } = job.options
    const jobs = this.#unfinished.get(url)
    if (jobs?.delete(job) === true && jobs.size === 0) this.#unfinished.delete(url)
  }

  #cancelJob(job: Job): void {
    this.#dropUnfinished(job)
    if (this.#newest.get(job.options.url) === job) this.#newest.delete(job.options.url)
    const place = this.#queue.indexOf(job)
    if (place >= 0) this.#queue.splice(place, 1)
    job.controller.abort(new Error('cancelled'))
  }

  async #wait(job: Job, waitMs: number): Promise<void> {
    this.#releaseSlot(job)
    await pause(waitMs, job.controller.signal)
    if (this.#running < this.#limits.maxRunning) this.#takeSlot(job)
    else {
      await new Promise<void>((resolve) => {
        this.#returning.push(() => {
          this.#takeSlot(job)
          resolve()
        })
      })
    }
    job.controller.signal.throwIfAborted()
  }

  #takeSlot(job: Job): void {
    job.hasSlot = true
    this.#running += 1
  }

  #releaseSlot(job: Job): void {
    if (!job.hasSlot) return
    job.hasSlot = false
    this.#running -= 1
    this.#startNext()
  }

  #sweep(): void {
    const oldestSec = nowSec() - this.#limits.failedLifeMs / 1000
    for (const [url, job] of this.#newest) {
      if (job.status.state !== 'failed' || job.status.atSec > oldestSec) continue
      this.#newest.delete(url)
      this.#onExpired(url)
    }
  }
}

function nowSec(): number {
  return Math.floor(Date.now() / 1000)
}

/** Resolves after `waitMs` milliseconds; rejects with the signal's reason as soon as it aborts. */
function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(resolve, Math.min(waitMs, MAX_TIMER_MS))
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}
