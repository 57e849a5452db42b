/** Sends phases of requests to the pool, with several requests in one task. */
import { Batcher, type LostCall } from '../threads/batcher.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type { GuestTaskResult, LoadedModule, PhaseItem, PhaseResult } from '../threads/guest-task.ts'
import type { PhaseOrigin } from './phase-message.ts'

/** Maximum number of requests in a batch, since each request waits for the whole batch. */
const MAX_BATCH = 16
/** Maximum size of the bodies of a batch, bytes; a larger body is sent alone. */
const MAX_BATCH_BODY_BYTES = 262_144

/** One phase of one request. */
export interface PhaseWork {
  /** Modules to call, in order. */
  readonly modules: readonly LoadedModule[]
  readonly item: Omit<PhaseItem, 'modules' | 'body'>
  /** Kept here for the case that a guest fails. Null if no module needs it. */
  readonly body: Uint8Array | null
  readonly origin: PhaseOrigin
}

/** How the phase ended. */
export type PhaseWorkEnd =
  | { readonly kind: 'results'; readonly results: readonly PhaseResult[] }
  /** The thread ended during a call; earlier results are lost. `module` is the index of the called module. */
  | { readonly kind: 'timeout' | 'crashed'; readonly module: number }
  /** No call was made: the queue was full or the wait too long. */
  | { readonly kind: 'refused' }
  /** No call was made, since a module was suspended while it waited. */
  | { readonly kind: 'suspended' }
  /** No call was made: the request has ended. */
  | { readonly kind: 'gone' }

interface Waiting {
  readonly work: PhaseWork
  /** Time by which its first call must begin, `performance.now()`. */
  readonly dueAtMs: number
  readonly resolve: (end: PhaseWorkEnd) => void
}

export class PhaseBatcher extends Batcher<Waiting> {
  readonly #maxOpen: number
  readonly #isSuspended: (module: LoadedModule) => boolean
  /** Waiting and running requests. */
  #open = 0
  /** After a call that used up its fuel, newer requests run first until the queue is empty. */
  #isNewestFirst = false

  /**
   * @param threads of the pool: the maximum number of running batches
   * @param maxWaiting maximum number of waiting requests, beyond one for each thread
   * @param isSuspended checked again before a waiting call is sent
   */
  constructor(
    pool: GuestPool,
    threads: number,
    maxWaiting: number,
    isSuspended: (module: LoadedModule) => boolean,
  ) {
    super(pool, threads)
    this.#isSuspended = isSuspended
    this.#maxOpen = threads + maxWaiting
  }

  /** Never rejects. */
  run(work: PhaseWork): Promise<PhaseWorkEnd> {
    if (this.#open >= this.#maxOpen) this.#dropGone()
    if (this.#open >= this.#maxOpen) return Promise.resolve({ kind: 'refused' })
    this.#open++
    return new Promise<PhaseWorkEnd>((settle) => {
      const resolve = (end: PhaseWorkEnd) => {
        this.#open--
        settle(end)
      }
      this.waiting.push({ work, dueAtMs: this.dueAtMs(work.modules[0]), resolve })
      this.schedule()
    })
  }

  /** Removes ended requests from the queue. */
  #dropGone(): void {
    const staying: Waiting[] = []
    for (const waiting of this.waiting) {
      if (waiting.work.origin.isDone) waiting.resolve({ kind: 'gone' })
      else staying.push(waiting)
    }
    this.waiting = staying
  }

  protected override takeBatch(fairShare: number): Waiting[] {
    const { overdueMs } = this
    const batch: Waiting[] = []
    let bodyBytes = 0
    let taken = 0
    const queue = this.#isNewestFirst ? this.waiting.toReversed() : this.waiting
    for (const waiting of queue) {
      if (batch.length >= Math.min(MAX_BATCH, fairShare)) break
      bodyBytes += waiting.work.body?.length ?? 0
      if (batch.length > 0 && bodyBytes > MAX_BATCH_BODY_BYTES) break
      taken++
      if (waiting.work.origin.isDone) waiting.resolve({ kind: 'gone' })
      else if (waiting.work.modules.some(this.#isSuspended)) waiting.resolve({ kind: 'suspended' })
      else if (waiting.dueAtMs < overdueMs) this.refuse(waiting)
      else batch.push(waiting)
    }
    if (this.#isNewestFirst) this.waiting.length -= taken
    else this.waiting.splice(0, taken)
    if (this.waiting.length === 0) this.#isNewestFirst = false
    return batch
  }

  protected override modulesOf({ work }: Waiting): readonly LoadedModule[] {
    return work.modules
  }

  /** Bodies are copied, and the copies transferred. */
  protected override draftOf(batch: readonly Waiting[], chain: readonly LoadedModule[]) {
    const transfer: ArrayBuffer[] = []
    const items = batch.map(({ work: { modules, item, body } }): PhaseItem => {
      const copy = body === null ? null : Uint8Array.from(body)
      if (copy !== null) transfer.push(copy.buffer)
      return { ...item, modules: modules.map((module) => chain.indexOf(module)), body: copy }
    })
    return { task: { kind: 'phases' as const, chain: chain.map(({ uuid }) => uuid), items }, transfer }
  }

  protected override settle(
    batch: readonly Waiting[],
    _chain: readonly LoadedModule[],
    result: GuestTaskResult,
  ): number {
    if (result.kind !== 'phases') return 0
    const { items } = result
    if (items.at(-1)?.some(({ failure }) => failure?.kind === 'fuel') === true) this.#isNewestFirst = true
    for (const [place, results] of items.entries()) batch[place].resolve({ kind: 'results', results })
    return items.length
  }

  protected override refuse({ resolve }: Waiting): void {
    resolve({ kind: 'refused' })
  }

  protected override recover(batch: readonly Waiting[], { kind, item, module }: LostCall): void {
    this.#isNewestFirst = true
    const { work, resolve } = batch[item]
    resolve({ kind, module: work.modules.indexOf(module) })
    this.restart(batch.toSpliced(item, 1))
  }
}
