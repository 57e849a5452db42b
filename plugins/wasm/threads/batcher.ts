/**
 * Sends work to the pool in batches, at most one per thread: work that arrives in one turn of the event loop, or while
 * all threads are busy, is sent together, since a message costs more than a call.
 */
import { type GuestPool, START_GRACE_MS, type TaskEnd, type TaskRequest } from './guest-pool.ts'
import { type LoadedModule, PROGRESS_BASE } from './guest-task.ts'

export abstract class Batcher<Waiting> {
  /** Longest waiting first. */
  protected waiting: Waiting[] = []
  protected readonly pool: GuestPool
  readonly #maxRunning: number
  #running = 0
  #isScheduled = false

  /** @param threads of the pool: the maximum number of running batches */
  constructor(pool: GuestPool, threads: number) {
    this.pool = pool
    this.#maxRunning = threads
  }

  /** Takes the next batch out of `waiting`; may return an empty one. @param fairShare of an idle thread */
  protected abstract takeBatch(fairShare: number): Waiting[]
  /** Runs a batch and calls `restart` for what must run again. Never rejects. */
  protected abstract send(batch: readonly Waiting[]): Promise<void>

  /** Sends at the end of the turn, together with other work of the turn. */
  protected schedule(): void {
    if (this.#isScheduled || this.#running >= this.#maxRunning) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  /** Puts work back to the front of the queue. */
  protected restart(work: readonly Waiting[]): void {
    if (work.length === 0) return
    this.waiting.unshift(...work)
    this.schedule()
  }

  /** Time by which the first call must begin, `performance.now()`. */
  protected dueAtMs({ timeoutMs }: LoadedModule): number {
    return performance.now() + timeoutMs + (this.pool.isStarting ? START_GRACE_MS : 0)
  }

  /** Work that was due before this time has waited too long. */
  protected get overdueMs(): number {
    return this.pool.isStarting ? 0 : performance.now()
  }

  #flush(): void {
    while (this.waiting.length > 0 && this.#running < this.#maxRunning) {
      const batch = this.takeBatch(Math.ceil(this.waiting.length / (this.#maxRunning - this.#running)))
      if (batch.length === 0) continue
      this.#running++
      void this.send(batch).finally(() => {
        this.#running--
        this.#flush()
      })
    }
  }
}

/** Modules and call limits of a task. */
export function chainOf(
  chain: readonly LoadedModule[],
): Pick<TaskRequest, 'modules' | 'limitMs' | 'shortestMs'> {
  let shortestMs = Number.POSITIVE_INFINITY
  for (const { timeoutMs } of chain) shortestMs = Math.min(shortestMs, timeoutMs)
  return {
    modules: chain,
    limitMs: (progress) => chain[Math.max(0, progress - 1) % PROGRESS_BASE].timeoutMs,
    shortestMs,
  }
}

/** The call during which the thread ended; null if no call had begun. */
export function lostCall(
  chain: readonly LoadedModule[],
  ended: Exclude<TaskEnd, { kind: 'result' }>,
): { kind: 'timeout' | 'crashed'; item: number; module: LoadedModule } | null {
  if (ended.kind === 'refused' || ended.progress === 0) return null
  const call = ended.progress - 1
  return { kind: ended.kind, item: Math.floor(call / PROGRESS_BASE), module: chain[call % PROGRESS_BASE] }
}
