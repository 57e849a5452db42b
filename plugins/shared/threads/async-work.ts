/** Asynchronous work: one run at a time, several in parallel, or periodically in batches. */
import type { Logger } from '#kernel'
import { RepeatedWork } from './repeated-work.ts'

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
    super(async () => {
      let count = 0
      try {
        count = await act(SLICE)
      } catch (error) {
        log.warn({ err: error }, what)
      }
      return count < SLICE ? intervalMs : PAUSE_MS
    }, intervalMs)
  }
}
