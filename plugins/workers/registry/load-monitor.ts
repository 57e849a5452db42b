/** Polls ready engines for their load and publishes the reports to all threads. */
import {
  type EngineLoad,
  type EngineLoads,
  Interval,
  type Logger,
  type RankLoad,
  type WorkerBalance,
  type WorkerControl,
  type WorkerEntry,
} from '#kernel'
import { Limiter } from '#shared'
import type { OverloadLimits } from './config.ts'
import { type EngineMetrics, isOverloaded, reportsOfRank, toEngineLoad, toEngineView } from './engine-load.ts'
import { Publisher } from './publisher.ts'
import type { EngineView } from './wire.ts'
import type { Worker } from './worker.ts'

const MAX_PARALLEL = 128
/** Interval at which due engines are determined; no engine is polled more often. */
const POLL_MS = 1_000
const NEVER_MS = -1e15
/** Headroom over the average number of engines per round, so that delayed engines catch up. */
const HEADROOM_FACTOR = 1.25
/** An engine may be polled this much early, so that timer drift does not cost it a whole round. */
const SLACK_MS = POLL_MS / 2

export interface LoadMonitorParts {
  /** All registered workers. */
  readonly workers: () => readonly Worker[]
  readonly balance: Pick<WorkerBalance, 'status'>
  /** Control of a connection mode; null if no plugin supports it. */
  readonly controlOf: (mode: string) => Pick<WorkerControl, 'loads' | 'forget'> | null
  /** Interval for workers that set none, seconds. */
  readonly intervalSecs: number
  /** Null disables overload detection. */
  readonly overload: OverloadLimits | null
  /** Whether a policy or setting currently uses the reports. */
  readonly isWanted: () => boolean
  /** Resolves when every thread has the loads. */
  readonly publish: (loads: EngineLoads) => Promise<void>
  /** Null if engine metrics are disabled. */
  readonly metrics: EngineMetrics | null
  readonly log: Logger
}

/** Polling state of one engine, by the id of its first worker. */
interface EngineState {
  /** Of its first worker; a changed worker is polled again. */
  readonly entry: WorkerEntry
  /** `performance.now()` */
  queriedAtMs: number
  /** Between two polls. */
  periodMs: number
  isQueried: boolean
}

interface Reported {
  readonly slot: number
  readonly view: EngineView
  readonly load: EngineLoad
}

export class LoadMonitor {
  readonly #parts: LoadMonitorParts
  readonly #publisher: Publisher
  readonly #limiter = new Limiter(MAX_PARALLEL)
  readonly #engines = new Map<string, EngineState>()
  /** Last reports, by worker id. */
  readonly #reports = new Map<string, Reported>()
  readonly #polls: Interval
  #hasChanges = false

  constructor(parts: LoadMonitorParts) {
    this.#parts = parts
    this.#polls = new Interval(POLL_MS, () => {
      this.#poll().catch((error: unknown) => parts.log.error({ err: error }, 'load poll failed'))
    })
    this.#publisher = new Publisher(() => {
      this.#hasChanges = false
      return parts.publish(this.#loads())
    })
  }

  start(): void {
    this.#polls.start()
  }

  /** Idempotent. */
  stop(): void {
    this.#polls.stop()
  }

  /** The last report of a worker's engine; null if engines are not polled, or it reports nothing. */
  reportOf(id: string): EngineView | null {
    return this.#reports.get(id)?.view ?? null
  }

  /** Drops the reports of these workers; resolves when no thread has them any more. */
  async forget(workers: readonly Worker[]): Promise<void> {
    for (const { id } of workers) {
      this.#forgetEngine(id)
      this.#drop(id)
    }
    await this.#publishChanges()
  }

  /** One round: queries all due engines and publishes their reports once. */
  async #poll(): Promise<void> {
    const ready = this.#parts.isWanted() ? this.#readyEngines() : []
    this.#dropAllBut(ready)
    const due = this.#dueEngines(ready)
    if (this.#hasChanges) void this.#publishChanges()
    // Marked before the first one waits, so that the next round does not query them again.
    for (const [first] of due) this.#stateOf(first).isQueried = true
    await Promise.all(due.map((engine) => this.#limiter.run(() => this.#query(engine))))
    await this.#publishChanges()
  }

  /** Ready workers whose connection mode reports load, grouped by engine, in order of their ranks. */
  #readyEngines(): readonly (readonly Worker[])[] {
    const { balance, workers, controlOf } = this.#parts
    const ready = workers().filter(
      ({ entry }) =>
        balance.status(entry.slot) === 'ready' && controlOf(entry.connectionMode)?.loads !== undefined,
    )
    return [...Map.groupBy(ready, ({ spec }) => spec.url).values()]
  }

  /** Engines that are due. Of very many, those that have waited longest, so that polls are spread over the interval. */
  #dueEngines(engines: readonly (readonly Worker[])[]): readonly (readonly Worker[])[] {
    const nowMs = performance.now()
    const shortest = new Map<string, number>()
    for (const [worker] of engines) {
      const intervalMs = 1_000 * (worker.spec.carried.load_monitor_interval_secs || this.#parts.intervalSecs)
      const key = groupOf(worker)
      shortest.set(key, Math.min(intervalMs, shortest.get(key) ?? intervalMs))
    }
    let engineBudget = 0
    const due = engines.filter(([worker]) => {
      const state = this.#stateOf(worker)
      const periodMs = shortest.get(groupOf(worker)) ?? POLL_MS
      state.periodMs = periodMs
      engineBudget += POLL_MS / periodMs
      return !state.isQueried && nowMs - state.queriedAtMs >= periodMs - SLACK_MS
    })
    if (due.length <= MAX_PARALLEL) return due
    due.sort(([a], [b]) => this.#stateOf(a).queriedAtMs - this.#stateOf(b).queriedAtMs)
    return due.slice(0, Math.max(MAX_PARALLEL, Math.ceil(engineBudget * HEADROOM_FACTOR)))
  }

  #stateOf({ id, entry }: Worker): EngineState {
    const known = this.#engines.get(id)
    if (known !== undefined && known.entry.revision === entry.revision) return known
    const state = {
      entry,
      queriedAtMs: NEVER_MS,
      periodMs: POLL_MS,
      isQueried: false,
    }
    this.#engines.set(id, state)
    return state
  }

  async #query(engine: readonly Worker[]): Promise<void> {
    const [first] = engine
    const state = this.#stateOf(first)
    state.queriedAtMs = performance.now()
    const reports = await this.#read(state)
    state.isQueried = false
    // Changed or removed meanwhile: the report may be of another engine.
    if (this.#engines.get(first.id) !== state) return
    for (const worker of engine) {
      if (reports === null) this.#drop(worker.id)
      else this.#store(worker, reports, state.periodMs)
    }
  }

  async #read({ entry }: EngineState): Promise<readonly RankLoad[] | null> {
    try {
      const report = await this.#parts.controlOf(entry.connectionMode)?.loads?.(entry)
      return report?.ranks ?? null
    } catch (error) {
      this.#parts.log.error({ err: error, worker: entry.url }, 'load report unreadable')
      return null
    }
  }

  #store({ id, entry }: Worker, engineReports: readonly RankLoad[], periodMs: number): void {
    const { dataParallel, slot } = entry
    const reports =
      dataParallel === null
        ? engineReports
        : reportsOfRank(engineReports, dataParallel.rank, dataParallel.size)
    const load = { ...toEngineLoad(reports, Date.now()), periodMs, ...this.#overloadOf(reports) }
    this.#logOverload(entry, this.#reports.get(id)?.load, load)
    this.#reports.set(id, { slot, load, view: toEngineView(reports) })
    this.#parts.metrics?.set(entry, reports)
    this.#hasChanges = true
  }

  #overloadOf(reports: readonly RankLoad[]): Pick<EngineLoad, 'isOverloaded'> {
    const { overload } = this.#parts
    return overload !== null && isOverloaded(reports, overload) ? { isOverloaded: true } : {}
  }

  /** Logs the start and the end of an overload. */
  #logOverload({ url }: WorkerEntry, before: EngineLoad | undefined, after: EngineLoad): void {
    const isNow = after.isOverloaded === true
    if (isNow === (before?.isOverloaded === true)) return
    const { log, overload } = this.#parts
    const fields = { worker: url, kv_usage: after.kvUsage, sheds_requests: overload?.shed === true }
    if (isNow) log.warn(fields, 'engine overloaded')
    else log.info({ worker: url }, 'engine no longer overloaded')
  }

  #drop(id: string): void {
    this.#parts.metrics?.remove(id)
    if (this.#reports.delete(id)) this.#hasChanges = true
  }

  /** Drops the reports of workers that are no longer polled, which would never be updated again. */
  #dropAllBut(engines: readonly (readonly Worker[])[]): void {
    const kept = new Set(engines.flatMap((engine) => engine.map(({ id }) => id)))
    for (const id of this.#reports.keys()) if (!kept.has(id)) this.#drop(id)
    for (const id of this.#engines.keys()) if (!kept.has(id)) this.#forgetEngine(id)
  }

  /** If the worker comes back, it may be another engine. */
  #forgetEngine(id: string): void {
    const state = this.#engines.get(id)
    if (state === undefined) return
    this.#engines.delete(id)
    this.#parts.controlOf(state.entry.connectionMode)?.forget?.(state.entry)
  }

  async #publishChanges(): Promise<void> {
    if (!this.#hasChanges) return
    try {
      await this.#publisher.publish()
    } catch (error) {
      this.#parts.log.error({ err: error }, 'engine loads not published')
    }
  }

  #loads(): EngineLoads {
    const bySlot: (EngineLoad | null)[] = []
    let isAnyOverloaded = false
    for (const { slot, load } of this.#reports.values()) {
      while (bySlot.length <= slot) bySlot.push(null)
      bySlot[slot] = load
      isAnyOverloaded ||= load.isOverloaded === true
    }
    const { overload } = this.#parts
    if (!isAnyOverloaded || overload === null) return { bySlot }
    return { bySlot, overload: overload.shed ? 'shed' : 'avoid' }
  }
}

/** Workers with the same key share the shortest of their intervals. */
function groupOf({ entry }: Worker): string {
  return JSON.stringify([entry.models[0]?.id ?? 'unknown', entry.workerType, entry.connectionMode])
}
