/** Sends events of streams to the pool, with several streams in one task. */
import type { PhaseOrigin } from '../hooks/phase-message.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import { Batcher, type LostCall } from '../threads/batcher.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type {
  GuestTaskResult,
  LoadedModule,
  StreamItem,
  StreamItemResult,
  StreamReport,
} from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import type { SkipNotices } from './skip-notices.ts'

/** Maximum number of streams in a batch, since each stream waits for the whole batch. */
const MAX_BATCH = 64

/** Events of one stream, and its modules. */
export interface StreamWork extends Omit<StreamItem, 'modules' | 'point' | 'states'> {
  readonly modules: readonly LoadedModule[]
  /** State of each module; replaced by those that the modules return. */
  states: string[]
  readonly origin: Pick<PhaseOrigin, 'isDone'>
}

interface Waiting {
  readonly work: StreamWork
  /** Indices of the modules to call. */
  readonly places: readonly number[]
  /** Time by which its first call must begin, `performance.now()`. */
  readonly dueAtMs: number
  readonly resolve: (out: StreamItemResult['out'] | null) => void
}

export class StreamBatcher extends Batcher<Waiting> {
  readonly #inline: Pick<InlineGuests, 'stream'>
  readonly #statistics: CallStatistics
  readonly #notices: SkipNotices | null
  readonly #point: StreamItem['point']

  /**
   * @param threads of the pool: the maximum number of running batches
   * @param notices null if clients are not notified of skipped modules
   * @param point attach point of all work
   */
  constructor(
    inline: Pick<InlineGuests, 'stream'>,
    pool: GuestPool,
    statistics: CallStatistics,
    threads: number,
    notices: SkipNotices | null = null,
    point: StreamItem['point'] = 'OnStreamEvent',
  ) {
    super(pool, threads)
    this.#notices = notices
    this.#point = point
    this.#inline = inline
    this.#statistics = statistics
  }

  /** Synchronous if all modules run inline. @returns the outgoing events; null if a fail-closed module failed. Never rejects. */
  run(work: StreamWork): StreamItemResult['out'] | null | Promise<StreamItemResult['out'] | null> {
    const places = this.#withoutSuspended(work, null)
    if (places === null) return null
    if (places.length === 0) return this.#untouched(work)
    const inline = this.#here(work, places)
    if (inline !== undefined) return inline
    const dueAtMs = this.dueAtMs(work.modules[places[0]])
    return new Promise((resolve) => {
      this.waiting.push({ work, places, dueAtMs, resolve })
      this.schedule()
    })
  }

  /**
   * @param among indices to check; null for all
   * @returns those that are not suspended; null if a fail-closed module is suspended
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

  /** @returns undefined if the pool must run it */
  #here(work: StreamWork, places: readonly number[]): StreamItemResult['out'] | null | undefined {
    // Usually all modules are called, so that their lists are used unchanged.
    const isWhole = places.length === work.modules.length
    const modules = isWhole ? work.modules : places.map((place) => work.modules[place])
    const { requestId, tenant, firstIndex, events, isEnd } = work
    const ended = this.#inline.stream(modules, {
      point: this.#point,
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
    if (this.#notices !== null) this.#noteFailures(ended.reports, modules, [{ work }])
    return this.#finish(work, places, ended.result)
  }

  #note(reports: readonly StreamReport[], chain: readonly LoadedModule[]): void {
    for (let index = 0; index < reports.length; index++) {
      const report = reports[index]
      const call = { module: chain[report.module], point: this.#point, requestId: report.requestId }
      this.#statistics.called(call, report, report.isChanged ? 'modify' : 'continue')
    }
  }

  #noteFailures(
    reports: readonly StreamReport[],
    chain: readonly LoadedModule[],
    batch: readonly Pick<Waiting, 'work'>[],
  ): void {
    for (const { failure, module, requestId } of reports) {
      if (failure === null) continue
      for (const { work } of batch)
        if (work.requestId === requestId) this.#notices?.note(work, chain[module], failure.kind)
    }
  }

  /** @returns the outgoing events; null if a fail-closed module failed */
  #finish(
    work: StreamWork,
    places: readonly number[],
    { out, states, failedClosed }: StreamItemResult,
  ): StreamItemResult['out'] | null {
    for (let index = 0; index < places.length; index++) work.states[places[index]] = states[index]
    return failedClosed >= 0 ? null : this.#withNotices(work, out)
  }

  #untouched(work: StreamWork): StreamItemResult['out'] {
    return this.#withNotices(work, untouched(work))
  }

  #withNotices(work: StreamWork, out: StreamItemResult['out']): StreamItemResult['out'] {
    return this.#notices === null ? out : this.#notices.addTo(work, out)
  }

  /** Drops work of disconnected clients and of modules that were suspended or waited too long. */
  protected override takeBatch(fairShare: number): Waiting[] {
    const { overdueMs } = this
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
      else if (dueAtMs < overdueMs) this.refuse({ ...waiting, places })
      else batch.push({ ...waiting, places })
    }
    return batch
  }

  protected override modulesOf({ work, places }: Waiting): readonly LoadedModule[] {
    return places.map((place) => work.modules[place])
  }

  protected override draftOf(batch: readonly Waiting[], chain: readonly LoadedModule[]) {
    const items = batch.map(({ work, places }): StreamItem => {
      const { requestId, tenant, firstIndex, events, isEnd } = work
      return {
        point: this.#point,
        modules: places.map((place) => chain.indexOf(work.modules[place])),
        prefixes: places.map((place) => work.prefixes[place]),
        states: places.map((place) => work.states[place]),
        requestId,
        tenant,
        firstIndex,
        events,
        isEnd,
      }
    })
    return { task: { kind: 'stream' as const, chain: chain.map(({ uuid }) => uuid), items }, transfer: [] }
  }

  protected override settle(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
    result: GuestTaskResult,
  ): number {
    if (result.kind !== 'stream') return 0
    const { items, reports } = result
    this.#note(reports, chain)
    if (this.#notices !== null) this.#noteFailures(reports, chain, batch)
    for (const [place, one] of items.entries()) {
      const { work, places, resolve } = batch[place]
      resolve(this.#finish(work, places, one))
    }
    return items.length
  }

  protected override recover(batch: readonly Waiting[], { kind, item, module }: LostCall): void {
    const lost = batch[item]
    this.#statistics.lost({ module, point: this.#point, requestId: lost.work.requestId }, kind)
    this.waiting.push(...batch.toSpliced(item, 1))
    this.#withoutModule(lost, module, kind)
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

  protected override refuse({ work, places, resolve }: Waiting): void {
    for (const place of places) {
      this.#statistics.skip(work.modules[place], 'saturated')
      this.#notices?.note(work, work.modules[place], 'saturated')
    }
    const isClosed = places.some((place) => work.modules[place].onFailure === 'closed')
    resolve(isClosed ? null : this.#untouched(work))
  }
}

function untouched({ events }: StreamWork): StreamItemResult['out'] {
  return events.map((_, source) => ({ source, written: null }))
}
