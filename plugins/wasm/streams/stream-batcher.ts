/** Carries events of streams to the pool, those of many streams in one task. */

import type { PhaseOrigin } from '../hooks/phase-message.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import { Batcher } from '../threads/batcher.ts'
import { shortestOf } from '../threads/call-watch.ts'
import type { GuestPool, TaskEnd } from '../threads/guest-pool.ts'
import {
  type LoadedModule,
  PROGRESS_BASE,
  type StreamEvent,
  type StreamItem,
  type StreamItemResult,
  type StreamReport,
} from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import type { SkipNotices } from './skip-notices.ts'

/** Streams whose events go together at most: a longer batch would let each wait for all. */
const MAX_BATCH = 64
/** How much longer calls may wait for threads that are only starting, milliseconds. */
const START_GRACE_MS = 5_000
const POINT = 'OnStreamEvent' as const

/** Events of one stream, and its modules. */
export interface StreamWork {
  readonly modules: readonly LoadedModule[]
  /** Of each module; replaced by what the modules gave back. */
  states: string[]
  readonly prefixes: readonly string[]
  readonly requestId: string
  readonly tenant: string | null
  readonly firstIndex: number
  readonly events: readonly StreamEvent[]
  readonly isEnd: boolean
  readonly origin: Pick<PhaseOrigin, 'isDone'>
}

interface Waiting {
  readonly work: StreamWork
  /** Places in the work's modules that are still to be called. */
  readonly places: readonly number[]
  /** Until when its first call has to begin, `performance.now()`. */
  readonly dueAtMs: number
  readonly resolve: (out: StreamItemResult['out'] | null) => void
}

export class StreamBatcher extends Batcher<Waiting> {
  readonly #inline: Pick<InlineGuests, 'stream'>
  readonly #pool: GuestPool
  readonly #statistics: CallStatistics
  readonly #notices: SkipNotices | null

  /**
   * @param threads of the pool: as many batches are under way at most
   * @param notices null where clients are not told of modules that were passed by
   */
  constructor(
    inline: Pick<InlineGuests, 'stream'>,
    pool: GuestPool,
    statistics: CallStatistics,
    threads: number,
    notices: SkipNotices | null = null,
  ) {
    super(threads)
    this.#notices = notices
    this.#inline = inline
    this.#pool = pool
    this.#statistics = statistics
  }

  /** At once where all modules run on this thread. @returns the events to send on; null when a module that must not fail did. Never rejects. */
  run(work: StreamWork): StreamItemResult['out'] | null | Promise<StreamItemResult['out'] | null> {
    const places = this.#withoutSuspended(work, null)
    if (places === null) return null
    if (places.length === 0) return this.#untouched(work)
    const inline = this.#here(work, places)
    if (inline !== undefined) return inline
    const graceMs = this.#pool.isStarting ? START_GRACE_MS : 0
    const dueAtMs = performance.now() + work.modules[places[0]].timeoutMs + graceMs
    return new Promise((resolve) => {
      this.waiting.push({ work, places, dueAtMs, resolve })
      this.schedule()
    })
  }

  /**
   * @param among places to look at; null for all
   * @returns those of modules that may be called; null when one that must not fail may not
   */
  #withoutSuspended(work: StreamWork, among: readonly number[] | null): readonly number[] | null {
    const { modules } = work
    const places: number[] = []
    const count = among?.length ?? modules.length
    for (let index = 0; index < count; index++) {
      const place = among === null ? index : among[index]
      const module = modules[place]
      if (!this.#statistics.isSuspended(module)) places.push(place)
      else {
        this.#statistics.skip(module, 'suspended')
        this.#notices?.note(work, module, 'suspended')
        if (module.onFailure === 'closed') return null
      }
    }
    return places
  }

  /** @returns undefined when the pool has to do it */
  #here(work: StreamWork, places: readonly number[]): StreamItemResult['out'] | null | undefined {
    // Nearly always all of them: their lists serve as they are, and one that stands for the whole stream is known.
    const isWhole = places.length === work.modules.length
    const modules = isWhole ? work.modules : places.map((place) => work.modules[place])
    const { requestId, tenant, firstIndex, events, isEnd } = work
    const ended = this.#inline.stream(modules, {
      prefixes: isWhole ? work.prefixes : places.map((place) => work.prefixes[place]),
      states: isWhole ? work.states : places.map((place) => work.states[place]),
      requestId,
      tenant,
      firstIndex,
      events,
      isEnd,
    })
    if (ended === null) return undefined
    this.#note(ended.reports, modules)
    if (this.#notices !== null) this.#noteFailures(ended.reports, modules, [work])
    return this.#settle(work, places, ended.result)
  }

  #note(reports: readonly StreamReport[], chain: readonly LoadedModule[]): void {
    for (let index = 0; index < reports.length; index++) {
      const report = reports[index]
      const call = { module: chain[report.module], point: POINT, requestId: report.requestId }
      this.#statistics.called(call, report, report.isChanged ? 'modify' : 'continue')
    }
  }

  #noteFailures(
    reports: readonly StreamReport[],
    chain: readonly LoadedModule[],
    works: readonly StreamWork[],
  ): void {
    for (const { failure, module, requestId } of reports) {
      if (failure === null) continue
      for (const work of works)
        if (work.requestId === requestId) this.#notices?.note(work, chain[module], failure.kind)
    }
  }

  #settle(
    work: StreamWork,
    places: readonly number[],
    result: StreamItemResult,
  ): StreamItemResult['out'] | null {
    const out = settle(work, places, result)
    return out === null || this.#notices === null ? out : this.#notices.addTo(work, out)
  }

  #untouched(work: StreamWork): StreamItemResult['out'] {
    const out = untouched(work)
    return this.#notices === null ? out : this.#notices.addTo(work, out)
  }

  /**
   * Nobody is called for a client that has left, no module that was suspended meanwhile is called, and those whose time is
   * over are told so.
   */
  protected override takeBatch(fairShare: number): Waiting[] {
    const nowMs = this.#pool.isStarting ? 0 : performance.now()
    const batch: Waiting[] = []
    for (const waiting of this.waiting.splice(0, Math.min(MAX_BATCH, fairShare))) {
      const { work, resolve, dueAtMs } = waiting
      if (work.origin.isDone) {
        resolve(untouched(work))
        continue
      }
      const places = this.#withoutSuspended(work, waiting.places)
      if (places === null) resolve(null)
      else if (places.length === 0) resolve(this.#untouched(work))
      else if (dueAtMs < nowMs) this.#passBy({ ...waiting, places })
      else batch.push({ ...waiting, places })
    }
    return batch
  }

  protected override async send(batch: readonly Waiting[]): Promise<void> {
    const chain = [
      ...new Set(batch.flatMap(({ work, places }) => places.map((place) => work.modules[place]))),
    ]
    const ended = await this.#pool.run({
      draft: {
        kind: 'stream',
        chain: chain.map(({ uuid }) => uuid),
        items: batch.map((waiting) => toItem(waiting, chain)),
      },
      modules: chain,
      limitMs: (progress) => chain[Math.max(0, progress - 1) % PROGRESS_BASE].timeoutMs,
      shortestMs: shortestOf(chain),
    })
    if (ended.kind !== 'result') this.#recover(batch, chain, ended)
    else if (ended.result.kind === 'stream') {
      this.#note(ended.result.reports, chain)
      const { items, reports } = ended.result
      if (this.#notices !== null)
        this.#noteFailures(
          reports,
          chain,
          batch.map(({ work }) => work),
        )
      for (const [place, result] of items.entries()) {
        const { work, places, resolve } = batch[place]
        resolve(this.#settle(work, places, result))
      }
      if (items.length === batch.length) return
      this.waiting.unshift(...batch.slice(items.length))
      this.schedule()
    }
  }

  /** The thread is gone, and with it what the batch had come to: all start again, the failedItem without its module. */
  #recover(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
    ended: Exclude<TaskEnd, { kind: 'result' }>,
  ): void {
    if (ended.kind === 'refused' || ended.progress === 0) {
      for (const waiting of batch) this.#passBy(waiting)
      return
    }
    const failedItem = Math.floor((ended.progress - 1) / PROGRESS_BASE)
    const module = chain[(ended.progress - 1) % PROGRESS_BASE]
    this.#statistics.lost({ module, point: POINT, requestId: batch[failedItem].work.requestId }, ended.kind)
    for (const [place, waiting] of batch.entries()) {
      if (place !== failedItem) this.waiting.push(waiting)
      else this.#withoutModule(waiting, module, ended.kind)
    }
    this.schedule()
  }

  #withoutModule(waiting: Waiting, module: LoadedModule, reason: string): void {
    const { work, places, resolve } = waiting
    this.#notices?.note(work, module, reason)
    const left = places.filter((place) => work.modules[place] !== module)
    if (module.onFailure === 'closed') resolve(null)
    else if (left.length === 0) resolve(this.#untouched(work))
    else this.waiting.push({ ...waiting, places: left })
  }

  #passBy({ work, places, resolve }: Waiting): void {
    for (const place of places) {
      this.#statistics.skip(work.modules[place], 'saturated')
      this.#notices?.note(work, work.modules[place], 'saturated')
    }
    const isClosed = places.some((place) => work.modules[place].onFailure === 'closed')
    resolve(isClosed ? null : this.#untouched(work))
  }
}

function toItem({ work, places }: Waiting, chain: readonly LoadedModule[]): StreamItem {
  const { requestId, tenant, firstIndex, events, isEnd } = work
  return {
    modules: places.map((place) => chain.indexOf(work.modules[place])),
    prefixes: places.map((place) => work.prefixes[place]),
    states: places.map((place) => work.states[place]),
    requestId,
    tenant,
    firstIndex,
    events,
    isEnd,
  }
}

function settle(
  work: StreamWork,
  places: readonly number[],
  { out, states, failedClosed }: StreamItemResult,
): StreamItemResult['out'] | null {
  for (let index = 0; index < places.length; index++) work.states[places[index]] = states[index]
  return failedClosed >= 0 ? null : out
}

function untouched({ events }: StreamWork): StreamItemResult['out'] {
  return events.map((_, source) => ({ source, written: null }))
}
