/** When asynchronous work runs: one run at a time, a few in parallel, or again and again. */
import type { Logger } from '#kernel'
import { FailureLog } from './failure-log.ts'

/** Runs asynchronous work one run at a time; calls during a run share the next one. */
export class CoalescedWork {
  readonly #work: () => Promise<void>
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null

  /** @param work never rejects */
  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Resolves at the end of a run that begins after this call. */
  run(): Promise<void> {
    this.#next ??= this.#start()
    return this.#next
  }

  /** Resolves when the present run has ended. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #start(): Promise<void> {
    await this.#running
    this.#next = null
    this.#running = this.#work()
    await this.#running
  }
}

/** Runs tasks of the same key one after the other, in the order of the calls; a failed task does not stop later ones. */
export class SerialByKey {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Resolves or rejects as the task does. */
  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const run = before.then(task, task)
    this.#last.set(key, run)
    try {
      return await run
    } finally {
      if (this.#last.get(key) === run) this.#last.delete(key)
    }
  }
}

/** Limits how many tasks run at once; the others wait in order. */
export class Limiter {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(maxRunning: number) {
    this.#free = maxRunning
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}

/** Runs `run` on every item, at most `maxParallel` at a time. Results are in order of the items. */
export function fanOut<Item, Result>(
  items: readonly Item[],
  maxParallel: number,
  run: (item: Item, place: number) => Promise<Result>,
): Promise<Result[]> {
  const limiter = new Limiter(maxParallel)
  return Promise.all(items.map((item, place) => limiter.run(() => run(item, place))))
}

/** Repeats asynchronous work, one run at a time, with a pause after each run. */
export class RepeatedWork {
  readonly #work: () => Promise<number | null>
  readonly #delayMs: number
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStarted = false
  #isStopped = false

  /**
   * @param work never rejects; returns the pause until the next run in milliseconds, or null to end
   * @param delayMs of the first run
   */
  constructor(work: () => Promise<number | null>, delayMs = 0) {
    this.#work = work
    this.#delayMs = delayMs
  }

  /** Resolves at the end of the first run, if it is not delayed. */
  async start(): Promise<void> {
    if (this.#isStarted || this.#isStopped) return
    this.#isStarted = true
    if (this.#delayMs > 0) this.#schedule(this.#delayMs)
    else await this.#run()
  }

  /** Resolves when the present run has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => void this.#run(), delayMs).unref()
  }

  #run(): Promise<void> {
    this.#running = this.#work().then((pauseMs) => {
      if (pauseMs !== null && !this.#isStopped) this.#schedule(pauseMs)
    })
    return this.#running
  }
}

/** Maximum records per batch. */
const SLICE = 256
/** Pause between two batches, so that other work can run. */
const PAUSE_MS = 10

/** Periodic background work in batches, such as deleting expired records; an error does not stop it. */
export class PeriodicBatches extends RepeatedWork {
  /**
   * @param act processes up to `limit` records and returns their number; fewer means that none is left
   * @param intervalMs pause when none is left
   * @param what log message of a failure, such as `expired records could not be deleted`
   */
  constructor(act: (limit: number) => Promise<number>, intervalMs: number, log: Logger, what: string) {
    const failures = new FailureLog(log, what)
    super(async () => {
      let count = 0
      try {
        count = await act(SLICE)
        failures.succeeded()
      } catch (error) {
        failures.failed(error)
      }
      return count < SLICE ? intervalMs : PAUSE_MS
    }, intervalMs)
  }
}
