/** Runs the background work behind the 202 replies: a bounded queue, one status per worker URL, and an end for each. */
import type { Logger } from '#kernel'
import { workerErrors } from './errors.ts'
import { MAX_DELAY_MS, pause } from './pause.ts'

export type JobKind = 'AddWorker' | 'UpdateWorker' | 'RemoveWorker'

export interface JobStatus {
  readonly kind: JobKind
  /** As in the options. */
  readonly url: string
  readonly state: 'pending' | 'processing' | 'failed'
  /** Why it failed, or what keeps it from going on; null before. */
  readonly message: string | null
  /** Unix seconds of the last change of state. */
  readonly atSec: number
}

/** What a job sees of its runner. */
export interface JobContext {
  /** Aborted when the job is cancelled or its time is over. */
  readonly signal: AbortSignal
  /** Says what keeps the job from going on: in its status at once, in the log with growing pauses. */
  note(problem: string): void
  /** Waits without holding one of the running places. @throws the signal's reason */
  wait(waitMs: number): Promise<void>
}

export interface JobOptions {
  readonly kind: JobKind
  /** URL of the worker as `workerKey` writes it; its newest job is the one whose status is shown. */
  readonly url: string
  /** For the whole job from its start, milliseconds; infinite for none. */
  readonly budgetMs: number
  /** The queue's limit does not hold for it: start-up work that nobody could send again. */
  readonly isExempt?: boolean
}

export interface JobLimits {
  readonly maxQueued: number
  readonly maxRunning: number
  /** How long a failed job is remembered, milliseconds. */
  readonly failedLifeMs: number
  readonly sweepMs: number
}

export const JOB_LIMITS: JobLimits = Object.freeze({
  maxQueued: 1000,
  maxRunning: 200,
  failedLifeMs: 300_000,
  sweepMs: 60_000,
})

/** A worker that does not come up is told of at once, then after 15 s, 1 min, 4 min, then every 15 min. */
const FIRST_NOTE_PAUSE_MS = 15_000
const MAX_NOTE_PAUSE_MS = 900_000

/** Jobs take well under a second each, so there is room again soon. */
const RETRY_SOON = Object.freeze({ headers: ['retry-after', '1'] })

interface Job {
  readonly options: JobOptions
  readonly work: (context: JobContext) => Promise<void>
  readonly controller: AbortController
  status: JobStatus
  hasPlace: boolean
  /** Of the next log line about what keeps it, `performance.now()`, and how long the pause after that is. */
  notedUntilMs: number
  notePauseMs: number
}

export class JobRunner {
  readonly #limits: JobLimits
  readonly #log: Logger
  readonly #onExpired: (url: string) => void
  /** Newest job of each URL, until it succeeds or its failure is old. */
  readonly #newest = new Map<string, Job>()
  /** Jobs that are queued or run, by URL: a burst of registrations must not search all of them. */
  readonly #unfinished = new Map<string, Set<Job>>()
  readonly #queue: Job[] = []
  /** Jobs whose wait is over and which want a place again; they go before new ones. */
  readonly #returning: (() => void)[] = []
  readonly #sweeper: NodeJS.Timeout
  #running = 0
  #isStarting = false

  /** @param onExpired told the URL of each failed job that is forgotten */
  constructor(log: Logger, onExpired: (url: string) => void, limits: JobLimits = JOB_LIMITS) {
    this.#limits = limits
    this.#log = log
    this.#onExpired = onExpired
    this.#sweeper = setInterval(() => this.#sweep(), limits.sweepMs).unref()
  }

  /** @throws job_queue_full (503) when one more could only be refused */
  requireRoom(): void {
    if (this.#running < this.#limits.maxRunning || this.#queue.length < this.#limits.maxQueued) return
    throw workerErrors.job_queue_full.with(RETRY_SOON, this.#queue.length)
  }

  /**
   * Takes a job on; it starts at once when a place is free. What its work throws becomes the message of its status.
   * @throws job_queue_full (503)
   */
  submit(options: JobOptions, work: (context: JobContext) => Promise<void>): void {
    if (options.isExempt !== true) this.requireRoom()
    const status: JobStatus = {
      kind: options.kind,
      url: options.url,
      state: 'pending',
      message: null,
      atSec: nowSec(),
    }
    const job: Job = {
      options,
      work,
      controller: new AbortController(),
      status,
      hasPlace: false,
      notedUntilMs: 0,
      notePauseMs: FIRST_NOTE_PAUSE_MS,
    }
    this.#newest.set(options.url, job)
    const others = this.#unfinished.get(options.url)
    if (others === undefined) this.#unfinished.set(options.url, new Set([job]))
    else others.add(job)
    this.#queue.push(job)
    this.#startNext()
  }

  /** Status of the URL's newest job that has not succeeded and was not cancelled; undefined when there is none. */
  status(url: string): JobStatus | undefined {
    const job = this.#newest.get(url) ?? this.#unfinished.get(url)?.values().next().value
    return job?.status
  }

  /** True while a job of the kind is queued or runs. */
  isUnfinished(url: string, kind: JobKind): boolean {
    return this.#unfinishedOf(url, kind).length > 0
  }

  /** Stops the URL's jobs of one kind; they leave no status. */
  cancel(url: string, kind: JobKind): void {
    for (const job of this.#unfinishedOf(url, kind)) this.#giveUp(job)
  }

  /** Forgets how the URL's newest job ended. */
  forget(url: string): void {
    const job = this.#newest.get(url)
    if (job?.status.state === 'failed') this.#newest.delete(url)
  }

  /** Cancels everything. Safe to call twice. */
  stop(): void {
    clearInterval(this.#sweeper)
    for (const job of [...this.#unfinished.values()].flatMap((jobs) => [...jobs])) this.#giveUp(job)
  }

  #unfinishedOf(url: string, kind: JobKind): Job[] {
    return [...(this.#unfinished.get(url) ?? [])].filter((job) => job.options.kind === kind)
  }

  /** A job that waits at once comes back here while the loop runs: the flag keeps that from nesting. */
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
      this.#takePlace(job)
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
          Math.min(budgetMs, MAX_DELAY_MS),
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
      this.#leavePlace(job)
    }
  }

  #note(job: Job, problem: string): void {
    job.status = { ...job.status, message: problem, atSec: nowSec() }
    const nowMs = performance.now()
    if (nowMs < job.notedUntilMs) return
    job.notedUntilMs = nowMs + job.notePauseMs
    job.notePauseMs = Math.min(MAX_NOTE_PAUSE_MS, job.notePauseMs * 4)
    this.#log.warn(
      { job: job.options.kind, worker: job.options.url, reason: problem },
      'worker is registered, but not reachable',
    )
  }

  #fail(job: Job, error: unknown): void {
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

  #giveUp(job: Job): void {
    this.#dropUnfinished(job)
    if (this.#newest.get(job.options.url) === job) this.#newest.delete(job.options.url)
    const place = this.#queue.indexOf(job)
    if (place >= 0) this.#queue.splice(place, 1)
    job.controller.abort(new Error('cancelled'))
  }

  async #wait(job: Job, waitMs: number): Promise<void> {
    this.#leavePlace(job)
    await pause(waitMs, job.controller.signal)
    if (this.#running < this.#limits.maxRunning) this.#takePlace(job)
    else {
      await new Promise<void>((resolve) => {
        this.#returning.push(() => {
          this.#takePlace(job)
          resolve()
        })
      })
    }
    job.controller.signal.throwIfAborted()
  }

  #takePlace(job: Job): void {
    job.hasPlace = true
    this.#running += 1
  }

  #leavePlace(job: Job): void {
    if (!job.hasPlace) return
    job.hasPlace = false
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

/** What a failure says of itself, for statuses and replies. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function nowSec(): number {
  return Math.floor(Date.now() / 1000)
}
