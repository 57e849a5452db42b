/**
 * Sends work to the pool in batches, at most one per thread: work that arrives in one turn of the event loop, or while
 * all threads are busy, is sent together, since a message costs more than a call.
 */
import { type GuestPool, START_GRACE_MS, type TaskEnd, type TaskRequest } from './guest-pool.ts'
import { type GuestTaskResult, type LoadedModule, PROGRESS_BASE } from './guest-task.ts'

/** The call during which a thread ended. */
export interface LostCall {
  readonly kind: 'timeout' | 'crashed'
  /** Index of the work in the batch. */
  readonly item: number
  readonly module: LoadedModule
}

export abstract class Batcher<Waiting> {
  /** Longest waiting first. */
  protected waiting: Waiting[] = []
  readonly #pool: GuestPool
  readonly #maxRunning: number
  #running = 0
  #isScheduled = false

  /** @param threads of the pool: the maximum number of running batches */
  constructor(pool: GuestPool, threads: number) {
    this.#pool = pool
    this.#maxRunning = threads
  }

  /** Takes the next batch out of `waiting`; may return an empty one. @param fairShare of an idle thread */
  protected abstract takeBatch(fairShare: number): Waiting[]
  /** Modules to call for the work. */
  protected abstract modulesOf(work: Waiting): readonly LoadedModule[]
  /** @param chain modules of the batch, each once */
  protected abstract draftOf(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
  ): ReturnType<TaskRequest['draft']>
  /** Settles work by the result of its batch. @returns number of items that have a result; the others run again */
  protected abstract settle(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
    result: GuestTaskResult,
  ): number
  /** Settles work for which no call was made. */
  protected abstract refuse(work: Waiting): void
  /** The results of the batch are lost with the thread: runs it again, without the call that was lost. */
  protected abstract recover(batch: readonly Waiting[], lost: LostCall): void

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
    return performance.now() + timeoutMs + (this.#pool.isStarting ? START_GRACE_MS : 0)
  }

  /** Work that was due before this time has waited too long. */
  protected get overdueMs(): number {
    return this.#pool.isStarting ? 0 : performance.now()
  }

  #flush(): void {
    while (this.waiting.length > 0 && this.#running < this.#maxRunning) {
      const batch = this.takeBatch(Math.ceil(this.waiting.length / (this.#maxRunning - this.#running)))
      if (batch.length === 0) continue
      this.#running++
      void this.#send(batch).finally(() => {
        this.#running--
        this.#flush()
      })
    }
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const chain = [...new Set(batch.flatMap((work) => this.modulesOf(work)))]
    const ended = await this.#pool.run({
      modules: chain,
      limitMs: (progress) => chain[Math.max(0, progress - 1) % PROGRESS_BASE].timeoutMs,
      shortestMs: Math.min(...chain.map(({ timeoutMs }) => timeoutMs)),
      draft: () => this.draftOf(batch, chain),
    })
    if (ended.kind === 'result') {
      this.restart(batch.slice(this.settle(batch, chain, ended.result)))
      return
    }
    const lost = lostCall(chain, ended)
    if (lost !== null) this.recover(batch, lost)
    else for (const work of batch) this.refuse(work)
  }
}

/** @returns null if no call had begun */
function lostCall(
  chain: readonly LoadedModule[],
  ended: Exclude<TaskEnd, { kind: 'result' }>,
): LostCall | null {
  if (ended.kind === 'refused' || ended.progress === 0) return null
  const call = ended.progress - 1
  return { kind: ended.kind, item: Math.floor(call / PROGRESS_BASE), module: chain[call % PROGRESS_BASE] }
}
