/** Asks ready engines for their load, some at a time, and publishes what they say to all threads. */
import type {
  EngineLoad,
  EngineLoads,
  Logger,
  RankLoad,
  WorkerBalance,
  WorkerControl,
  WorkerEntry,
} from '#kernel'
import type { OverloadLimits } from './config.ts'
import { isOverloaded, reportsOfRank, toEngineLoad } from './engine-load.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import { Limiter } from './limiter.ts'
import { Publisher } from './publisher.ts'
import type { Worker } from './worker.ts'

const MAX_PARALLEL = 128
/** How often it is looked whose turn it is: the shortest period. */
const LOOK_MS = 1_000
const NEVER_MS = -1e15
/** How many more turns a look has than the periods ask for, so that those who wait catch up. */
const ROOM_FACTOR = 1.25
/** A turn that comes this early counts, so that timers which drift cost no whole look. */
const SLACK_MS = LOOK_MS / 2

export interface LoadMonitorParts {
  /** All registered workers. */
  readonly workers: () => readonly Worker[]
  readonly balance: Pick<WorkerBalance, 'status'>
  /** Who asks workers of a connection mode; null when nobody does. */
  readonly controlOf: (mode: string) => Pick<WorkerControl, 'loads' | 'forget'> | null
  /** Of workers that name no period of their own. */
  readonly intervalSecs: number
  /** Null where nobody looks for overload. */
  readonly overload: OverloadLimits | null
  /** Whether anybody reads the reports now. */
  readonly isWanted: () => boolean
  /** Resolves when every thread has them. */
  readonly publish: (loads: EngineLoads) => Promise<void>
  /** Null where engine metrics are off. */
  readonly metrics: EngineMetrics | null
  readonly log: Logger
}

/** What is known of one engine, by the id of its first worker. */
interface EngineState {
  /** Of its first worker; a changed worker is asked anew. */
  readonly entry: WorkerEntry
  /** Of the clock that only goes forward, milliseconds. */
  askedAtMs: number
  /** Between its turns. */
  periodMs: number
  isBeingAsked: boolean
}

interface Reported {
  readonly slot: number
  readonly load: EngineLoad
}

export class LoadMonitor {
  readonly #parts: LoadMonitorParts
  readonly #publisher: Publisher
  readonly #limiter = new Limiter(MAX_PARALLEL)
  readonly #engines = new Map<string, EngineState>()
  /** Last reports, by worker id. */
  readonly #reports = new Map<string, Reported>()
  #timer: NodeJS.Timeout | null = null
  #hasNews = false

  constructor(parts: LoadMonitorParts) {
    this.#parts = parts
    this.#publisher = new Publisher(() => {
      this.#hasNews = false
      return parts.publish(this.#loads())
    })
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      this.#look().catch((error: unknown) =>
        this.#parts.log.error({ err: error }, 'a look at the loads failed'),
      )
    }, LOOK_MS).unref()
  }

  /** Safe to call twice. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  /** Drops what these workers reported; resolves when no thread has it any more. */
  async forget(workers: readonly Worker[]): Promise<void> {
    for (const { id } of workers) {
      this.#forgetEngine(id)
      this.#drop(id)
    }
    await this.#publishNews()
  }

  /** One round: those whose turn it is are asked together, and what they all say is published once. */
  async #look(): Promise<void> {
    const ready = this.#parts.isWanted() ? this.#readyEngines() : []
    this.#dropAllBut(ready)
    const due = this.#turnsOf(ready)
    if (this.#hasNews) void this.#publishNews()
    // Taken before the first of them has to wait: the next look must not take them again.
    for (const [first] of due) this.#stateOf(first).isBeingAsked = true
    await Promise.all(due.map((engine) => this.#limiter.run(() => this.#ask(engine))))
    await this.#publishNews()
  }

  /** Ready workers of modes whose engines tell their load, those of one engine together, in order of their ranks. */
  #readyEngines(): readonly (readonly Worker[])[] {
    const { balance, workers, controlOf } = this.#parts
    const ready = workers().filter(
      ({ entry }) =>
        balance.status(entry.slot) === 'ready' && controlOf(entry.connectionMode)?.loads !== undefined,
    )
    return [...Map.groupBy(ready, ({ spec }) => spec.url).values()]
  }

  /** Those whose turn it is. Of very many, those who wait longest: spread over their periods, so that none is a burst. */
  #turnsOf(engines: readonly (readonly Worker[])[]): readonly (readonly Worker[])[] {
    const nowMs = performance.now()
    const shortest = new Map<string, number>()
    for (const [worker] of engines) {
      const intervalMs = 1_000 * (worker.spec.carried.load_monitor_interval_secs || this.#parts.intervalSecs)
      const key = groupOf(worker)
      shortest.set(key, Math.min(intervalMs, shortest.get(key) ?? intervalMs))
    }
    let turnsALook = 0
    const due = engines.filter(([worker]) => {
      const state = this.#stateOf(worker)
      const periodMs = shortest.get(groupOf(worker)) ?? LOOK_MS
      state.periodMs = periodMs
      turnsALook += LOOK_MS / periodMs
      return !state.isBeingAsked && nowMs - state.askedAtMs >= periodMs - SLACK_MS
    })
    if (due.length <= MAX_PARALLEL) return due
    due.sort(([a], [b]) => this.#stateOf(a).askedAtMs - this.#stateOf(b).askedAtMs)
    return due.slice(0, Math.max(MAX_PARALLEL, Math.ceil(turnsALook * ROOM_FACTOR)))
  }

  #stateOf({ id, entry }: Worker): EngineState {
    const known = this.#engines.get(id)
    if (known !== undefined && known.entry.revision === entry.revision) return known
    const state = {
      entry,
      askedAtMs: NEVER_MS,
      periodMs: LOOK_MS,
      isBeingAsked: false,
    }
    this.#engines.set(id, state)
    return state
  }

  async #ask(engine: readonly Worker[]): Promise<void> {
    const [first] = engine
    const state = this.#stateOf(first)
    state.askedAtMs = performance.now()
    const reports = await this.#read(state)
    state.isBeingAsked = false
    // Changed or removed meanwhile: the answer may be of something else.
    if (this.#engines.get(first.id) !== state) return
    for (const worker of engine) {
      if (reports === null) this.#drop(worker.id)
      else this.#keep(worker, reports, state.periodMs)
    }
  }

  /** Whatever an engine says, its turn ends and the others have theirs. */
  async #read({ entry }: EngineState): Promise<readonly RankLoad[] | null> {
    try {
      const report = await this.#parts.controlOf(entry.connectionMode)?.loads?.(entry)
      return report?.ranks ?? null
    } catch (error) {
      this.#parts.log.error({ err: error, worker: entry.url }, 'the report of an engine cannot be read')
      return null
    }
  }

  #keep({ id, entry }: Worker, engineReports: readonly RankLoad[], periodMs: number): void {
    const { dataParallel, slot } = entry
    const reports =
      dataParallel === null
        ? engineReports
        : reportsOfRank(engineReports, dataParallel.rank, dataParallel.size)
    const load = { ...toEngineLoad(reports, Date.now()), periodMs, ...this.#judge(reports) }
    this.#tellOfOverload(entry, this.#reports.get(id)?.load, load)
    this.#reports.set(id, { slot, load })
    this.#parts.metrics?.set(entry, reports)
    this.#hasNews = true
  }

  #judge(reports: readonly RankLoad[]): Pick<EngineLoad, 'isOverloaded'> {
    const { overload } = this.#parts
    return overload !== null && isOverloaded(reports, overload) ? { isOverloaded: true } : {}
  }

  /** Once when it begins and once when it ends. */
  #tellOfOverload({ url }: WorkerEntry, before: EngineLoad | undefined, after: EngineLoad): void {
    const isNow = after.isOverloaded === true
    if (isNow === (before?.isOverloaded === true)) return
    const { log, overload } = this.#parts
    const rest = overload?.shed ? 'requests that nobody else can take are refused' : 'others go before it'
    if (isNow) log.warn({ worker: url, kv_usage: after.kvUsage }, `the engine is overloaded: ${rest}`)
    else log.info({ worker: url }, 'the engine is no longer overloaded')
  }

  #drop(id: string): void {
    this.#parts.metrics?.remove(id)
    if (this.#reports.delete(id)) this.#hasNews = true
  }

  /** A worker that left ready is no longer asked, so what it said would stay for ever. */
  #dropAllBut(engines: readonly (readonly Worker[])[]): void {
    const kept = new Set(engines.flatMap((engine) => engine.map(({ id }) => id)))
    for (const id of this.#reports.keys()) if (!kept.has(id)) this.#drop(id)
    for (const id of this.#engines.keys()) if (!kept.has(id)) this.#forgetEngine(id)
  }

  /** What comes back may be another engine. */
  #forgetEngine(id: string): void {
    const state = this.#engines.get(id)
    if (state === undefined) return
    this.#engines.delete(id)
    this.#parts.controlOf(state.entry.connectionMode)?.forget?.(state.entry)
  }

  async #publishNews(): Promise<void> {
    if (!this.#hasNews) return
    try {
      await this.#publisher.publish()
    } catch (error) {
      this.#parts.log.error({ err: error }, 'engine loads are not published')
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

/** Workers that share a period. */
function groupOf({ entry }: Worker): string {
  return JSON.stringify([entry.models[0]?.id ?? 'unknown', entry.workerType, entry.connectionMode])
}
