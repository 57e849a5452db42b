/** Carries phases of requests to the pool, those of many requests in one task. */
import { Batcher } from '../threads/batcher.ts'
import { shortestOf } from '../threads/call-watch.ts'
import type { GuestPool, TaskEnd } from '../threads/guest-pool.ts'
import { type LoadedModule, type PhaseItem, type PhaseResult, PROGRESS_BASE } from '../threads/guest-task.ts'
import type { PhaseOrigin } from './phase-message.ts'

/** Requests that go together at most: a longer batch would let each wait for all. */
const MAX_BATCH = 16
/** Bodies of one batch are moved together; larger ones go alone. bytes */
const MAX_BATCH_BODY_BYTES = 262_144

/** One phase of one request. */
export interface PhaseWork {
  /** Modules to call, in order. */
  readonly modules: readonly LoadedModule[]
  readonly item: Omit<PhaseItem, 'modules' | 'body'>
  /** Stays here: it is what goes on when a guest fails. Null where no module needs it. */
  readonly body: Uint8Array | null
  /** Null for shadow calls. */
  readonly origin: PhaseOrigin | null
}

/** How the phase went. */
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

/** How much longer calls may wait for threads that are only starting, milliseconds. */
const START_GRACE_MS = 5_000

interface Waiting {
  readonly work: PhaseWork
  /** Until when its first call has to begin, `performance.now()`. */
  readonly dueAtMs: number
  readonly resolve: (end: PhaseWorkEnd) => void
}

export class PhaseBatcher extends Batcher<Waiting> {
  readonly #pool: GuestPool
  readonly #maxOpen: number
  readonly #isSuspended: (module: LoadedModule) => boolean
  /** Requests that wait or are under way. */
  #open = 0
  /**
   * A call has burnt all that it had, so those that came with it may too: until the queue is empty, who came last goes
   * first.
   */
  #isNewestFirst = false

  /**
   * @param threads of the pool: as many batches are under way at most
   * @param maxWaiting requests that may wait beyond one for each thread
   * @param isSuspended asked again when a call's turn has come
   */
  constructor(
    pool: GuestPool,
    threads: number,
    maxWaiting: number,
    isSuspended: (module: LoadedModule) => boolean,
  ) {
    super(threads)
    this.#isSuspended = isSuspended
    this.#pool = pool
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
      const graceMs = this.#pool.isStarting ? START_GRACE_MS : 0
      this.waiting.push({ work, dueAtMs: performance.now() + work.modules[0].timeoutMs + graceMs, resolve })
      this.schedule()
    })
  }

  /** Removes ended requests from the queue. */
  #dropGone(): void {
    const staying: Waiting[] = []
    for (const waiting of this.waiting) {
      if (waiting.work.origin?.isDone === true) waiting.resolve({ kind: 'gone' })
      else staying.push(waiting)
    }
    this.waiting = staying
  }

  /** The longest waiting first, unless a guest has just held up the queue; those whose time is over are told so. */
  protected override takeBatch(fairShare: number): Waiting[] {
    const nowMs = this.#pool.isStarting ? 0 : performance.now()
    const batch: Waiting[] = []
    let bodyBytes = 0
    let taken = 0
    const queue = this.#isNewestFirst ? this.waiting.toReversed() : this.waiting
    for (const waiting of queue) {
      if (batch.length >= Math.min(MAX_BATCH, fairShare)) break
      bodyBytes += waiting.work.body?.length ?? 0
      if (batch.length > 0 && bodyBytes > MAX_BATCH_BODY_BYTES) break
      taken++
      if (waiting.work.origin?.isDone === true) waiting.resolve({ kind: 'gone' })
      else if (waiting.work.modules.some(this.#isSuspended)) waiting.resolve({ kind: 'suspended' })
      else if (waiting.dueAtMs < nowMs) waiting.resolve({ kind: 'refused' })
      else batch.push(waiting)
    }
    if (this.#isNewestFirst) this.waiting.length -= taken
    else this.waiting.splice(0, taken)
    if (this.waiting.length === 0) this.#isNewestFirst = false
    return batch
  }

  protected override async send(batch: readonly Waiting[]): Promise<void> {
    const chain = [...new Set(batch.flatMap(({ work }) => work.modules))]
    const ended = await this.#pool.run({
      draft: { kind: 'phases', chain: chain.map(({ uuid }) => uuid), items: [] },
      modules: chain,
      limitMs: (progress) => chain[Math.max(0, progress - 1) % PROGRESS_BASE].timeoutMs,
      shortestMs: shortestOf(chain),
      prepare: () => prepare(batch, chain),
    })
    if (ended.kind !== 'result') this.#recover(batch, chain, ended)
    else if (ended.result.kind === 'phases') {
      const { items } = ended.result
      if (items.at(-1)?.some(({ failure }) => failure?.kind === 'fuel') === true) this.#isNewestFirst = true
      for (const [place, results] of items.entries()) batch[place].resolve({ kind: 'results', results })
      if (items.length === batch.length) return
      this.waiting.unshift(...batch.slice(items.length))
      this.schedule()
    }
  }

  /** The thread is gone, and with it what the batch had come to: all but the failedItem start again. */
  #recover(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
    ended: Exclude<TaskEnd, { kind: 'result' }>,
  ): void {
    if (ended.kind === 'refused' || ended.progress === 0) {
      for (const { resolve } of batch) resolve({ kind: 'refused' })
      return
    }
    const failedItem = Math.floor((ended.progress - 1) / PROGRESS_BASE)
    const module = chain[(ended.progress - 1) % PROGRESS_BASE]
    this.#isNewestFirst = true
    const { work, resolve } = batch[failedItem]
    resolve({ kind: ended.kind, module: work.modules.indexOf(module) })
    this.waiting.unshift(...batch.filter((_, place) => place !== failedItem))
    this.schedule()
  }
}

/** Bodies are copied and moved. */
function prepare(batch: readonly Waiting[], chain: readonly LoadedModule[]) {
  const transfer: ArrayBuffer[] = []
  const items = batch.map(({ work: { modules, item, body } }): PhaseItem => {
    const copy = body === null ? null : Uint8Array.from(body)
    if (copy !== null) transfer.push(copy.buffer)
    return { ...item, modules: modules.map((module) => chain.indexOf(module)), body: copy }
  })
  const draft = { kind: 'phases' as const, chain: chain.map(({ uuid }) => uuid), items }
  return { draft, transfer }
}
