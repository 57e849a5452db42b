/** Asynchronous work: one run at a time, several in parallel, or periodically in batches. */
import type { Logger } from '#kernel'

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

/** Runs `run` on every item, at most `maxParallel` at a time. Results are in order of the items; `run` must not reject. */
export async function fanOut<Item, Result>(
  items: readonly Item[],
  maxParallel: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length)
  let next = 0
  const lane = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await run(items[index])
  }
  await Promise.all(Array.from({ length: Math.min(maxParallel, items.length) }, lane))
  return results
}

/** Maximum records per batch. */
const SLICE = 256
/** Pause between two batches, so that other work can run. */
const PAUSE_MS = 10

/** Periodic background work in batches, such as deleting expired records; an error does not stop it. */
export class PeriodicBatches {
  readonly #act: (limit: number) => Promise<number>
  readonly #intervalMs: number
  readonly #log: Logger
  readonly #what: string
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  /**
   * @param act processes up to `limit` records and returns their number; fewer means that none is left
   * @param intervalMs pause when none is left
   * @param what log message of a failure, such as `expired records could not be deleted`
   */
  constructor(act: (limit: number) => Promise<number>, intervalMs: number, log: Logger, what: string) {
    this.#act = act
    this.#intervalMs = intervalMs
    this.#log = log
    this.#what = what
  }

  start(): void {
    if (this.#timer !== null || this.#isStopped) return
    this.#schedule(this.#intervalMs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    await this.#running
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#running = this.#slice()
    }, delayMs)
    this.#timer.unref()
  }

  async #slice(): Promise<void> {
    let count = 0
    try {
      count = await this.#act(SLICE)
    } catch (error) {
      this.#log.warn({ err: error }, this.#what)
    }
    if (!this.#isStopped) this.#schedule(count < SLICE ? this.#intervalMs : PAUSE_MS)
  }
}
