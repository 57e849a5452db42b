/** Sends events of streams to the pool, with several streams in one task. */
import type { RequestStepsService } from '#kernel'
import type { ModuleFetches } from '../fetch/module-fetches.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import { Batcher, type LostCall } from '../threads/batcher.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type {
  GuestTaskResult,
  LoadedModule,
  OutEvent,
  StreamItem,
  StreamItemResult,
  StreamPause,
  StreamReport,
} from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import { releaseHeld, withHeld } from './held-text.ts'
import type { SkipNotices } from './skip-notices.ts'
import { amongAll, amongCalled, isWhole, type StreamWork, untouched } from './stream-work.ts'

/** Maximum number of streams in a batch, since each stream waits for the whole batch. */
const MAX_BATCH = 64

/** Outgoing events; null if a fail-closed module failed. */
type StreamEnd = StreamItemResult['out'] | null

interface Waiting {
  readonly work: StreamWork
  /** Indices of the modules to call. */
  readonly places: readonly number[]
  /** Time by which its first call must begin, `performance.now()`. */
  readonly dueAtMs: number
  readonly resolve: (out: StreamEnd | Promise<StreamEnd>) => void
}

interface StreamBatcherParts {
  readonly inline: Pick<InlineGuests, 'stream'>
  readonly pool: GuestPool
  readonly statistics: CallStatistics
  readonly fetches: Pick<ModuleFetches, 'fetched' | 'limits'>
  /** Threads of the pool: the maximum number of running batches. */
  readonly threads: number
  /** Null if clients are not notified of skipped modules. */
  readonly notices: SkipNotices | null
  /** Undefined if steps are not recorded. */
  readonly steps: RequestStepsService | undefined
  /** Attach point of all work. */
  readonly point: StreamItem['point']
}

export class StreamBatcher extends Batcher<Waiting> {
  readonly #inline: Pick<InlineGuests, 'stream'>
  readonly #statistics: CallStatistics
  readonly #notices: SkipNotices | null
  readonly #steps: RequestStepsService | undefined
  readonly #point: StreamItem['point']
  readonly #fetches: StreamBatcherParts['fetches']

  constructor({ inline, pool, statistics, fetches, threads, notices, steps, point }: StreamBatcherParts) {
    super(pool, threads)
    this.#fetches = fetches
    this.#notices = notices
    this.#steps = steps
    this.#point = point
    this.#inline = inline
    this.#statistics = statistics
  }

  /**
   * Synchronous if all modules run inline and none fetches. Never rejects.
   *
   * @param among indices of the modules to call; null for all
   * @returns the outgoing events; null if a fail-closed module failed
   */
  run(work: StreamWork, among: readonly number[] | null = null): StreamEnd | Promise<StreamEnd> {
    const places = this.#withoutSuspended(work, among)
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
  #here(work: StreamWork, places: readonly number[]): StreamEnd | Promise<StreamEnd> | undefined {
    const modules = isWhole(work, places) ? work.modules : places.map((place) => work.modules[place])
    const ended = this.#inline.stream(modules, this.#itemOf(work, places))
    if (ended === null) return undefined
    this.#note(ended.reports, modules, [{ work }])
    return this.#finish(work, places, ended.result)
  }

  #itemOf(work: StreamWork, places: readonly number[]): Omit<StreamItem, 'modules'> {
    if (this.#point === 'OnText') releaseHeld(work, places)
    const { prefixes, states, requestId, tenant, firstIndex, events, isEnd, waited } = work
    // Usually all modules are called, so that their lists are used unchanged.
    const isAll = isWhole(work, places)
    return {
      point: this.#point,
      prefixes: isAll ? prefixes : places.map((place) => prefixes[place]),
      states: isAll ? states : places.map((place) => states[place]),
      requestId,
      tenant,
      firstIndex,
      events,
      isEnd,
      resume: waited === undefined ? null : amongCalled(waited.resume, places),
      maxFetches: this.#fetches.limits.maxPerCall,
    }
  }

  /** Records the calls of a batch: in the statistics, as steps of their requests, and for notices of failures. */
  #note(
    reports: readonly StreamReport[],
    chain: readonly LoadedModule[],
    batch: readonly Pick<Waiting, 'work'>[],
  ): void {
    for (let index = 0; index < reports.length; index++) {
      const report = reports[index]
      const { module: place, requestId, failure } = report
      const module = chain[place]
      this.#statistics.called({ module, point: this.#point, requestId }, report, report.action)
      if (this.#steps !== undefined) this.#noteStep(this.#steps, report, module, batch)
      if (this.#notices === null || failure === null) continue
      for (const { work } of batch)
        if (work.requestId === requestId) this.#notices.note(work, module, failure.kind)
    }
  }

  #noteStep(
    steps: RequestStepsService,
    { failure, requestId, durationUs }: StreamReport,
    { name }: LoadedModule,
    batch: readonly Pick<Waiting, 'work'>[],
  ): void {
    const origin = batch.find(({ work }) => work.requestId === requestId)?.work.origin
    if (origin === undefined) return
    const endedAtMs = performance.now()
    const startedAtMs = endedAtMs - durationUs / 1_000
    const error = failure?.kind ?? null
    steps.add(origin, { kind: 'module', name: `${name} at ${this.#point}`, startedAtMs, endedAtMs, error })
  }

  /** @returns the outgoing events; null if a fail-closed module failed */
  #finish(
    work: StreamWork,
    places: readonly number[],
    { out, states, failedClosed, pause }: StreamItemResult,
  ): StreamEnd | Promise<StreamEnd> {
    for (let index = 0; index < places.length; index++) work.states[places[index]] = states[index]
    if (failedClosed >= 0) return null
    const all = work.waited === undefined ? out : [...work.waited.out, ...out]
    if (pause !== null) return this.#fetch(work, places, all, pause)
    return this.#point === 'OnText' ? withHeld(work, places, all) : this.#withNotices(work, all)
  }

  /** Fetches without occupying a thread, then continues with the call that requested it. */
  async #fetch(
    work: StreamWork,
    places: readonly number[],
    out: readonly OutEvent[],
    { order, isRepeated, ...pause }: StreamPause,
  ): Promise<StreamEnd> {
    const { origin } = work
    const before = isRepeated ? (work.waited?.resume.fetched ?? null) : null
    const progress = amongAll(pause, places, work.modules.length)
    work.waited = { out, resume: { ...progress, fetched: null } }
    const module = work.modules[progress.pending.at(-1)?.place ?? progress.ended]
    const from = { origin, asker: origin, point: this.#point }
    const fetched = await this.#fetches.fetched(module, order, before, from)
    if (origin.isDone) return untouched(work)
    work.waited = { out, resume: { ...progress, fetched } }
    return this.run(work, places)
  }

  #untouched(work: StreamWork): StreamItemResult['out'] {
    if (this.#point === 'OnText') return withHeld(work, [], untouched(work))
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
    const items = batch.map(
      ({ work, places }): StreamItem => ({
        modules: places.map((place) => chain.indexOf(work.modules[place])),
        ...this.#itemOf(work, places),
      }),
    )
    return { task: { kind: 'stream' as const, chain: chain.map(({ uuid }) => uuid), items }, transfer: [] }
  }

  protected override settle(
    batch: readonly Waiting[],
    chain: readonly LoadedModule[],
    result: GuestTaskResult,
  ): number {
    if (result.kind !== 'stream') return 0
    const { items, reports } = result
    this.#note(reports, chain, batch)
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
