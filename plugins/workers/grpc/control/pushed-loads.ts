/**
 * Loads that engines send with their KV cache events. A data thread reads the events; control takes the loads from it instead of
 * asking the engine, which may have no other report.
 */
import { defineCommand, type EngineReport, type RankLoad, type WorkerEntry } from '#kernel'
import type { EngineLoad } from '../../../../proto/gen/common.ts'
import { readLoads } from '../runtimes/common-messages.ts'

/** Shortest time between two loads of one rank that control gets, milliseconds. */
const MIN_SEND_MS = 2_000
/** Control asks the engine if its last load is older, milliseconds. */
const MAX_AGE_MS = 6_000

export interface PushedLoad {
  readonly workerId: string
  readonly load: RankLoad
  /** Of the figures, when the engine sent them. */
  readonly ageMs: number
}

export const PushLoad = defineCommand<PushedLoad, void>('grpc.push-load')

/** On the data thread. */
export class LoadSender {
  readonly #send: (load: PushedLoad) => void
  /** `performance.now()` of the last load by rank. */
  readonly #sentAtMs = new WeakMap<WorkerEntry, Map<number, number>>()

  constructor(send: (load: PushedLoad) => void) {
    this.#send = send
  }

  add(worker: WorkerEntry, rank: number, load: EngineLoad): void {
    const report = toRankLoad(rank, load)
    if (report === undefined) return
    const sent = this.#sentAtMs.get(worker) ?? new Map<number, number>()
    const nowMs = performance.now()
    if (nowMs - (sent.get(report.rank) ?? -MIN_SEND_MS) < MIN_SEND_MS) return
    sent.set(report.rank, nowMs)
    this.#sentAtMs.set(worker, sent)
    this.#send({ workerId: worker.id, load: report, ageMs: load.ageMs })
  }
}

/** On control. */
export class PushedLoads {
  readonly #byWorker = new WeakMap<WorkerEntry, Map<number, { load: RankLoad; atMs: number }>>()

  add(worker: WorkerEntry, { load, ageMs }: PushedLoad): void {
    const ranks = this.#byWorker.get(worker) ?? new Map()
    ranks.set(load.rank, { load, atMs: performance.now() - ageMs })
    this.#byWorker.set(worker, ranks)
  }

  /** Null unless the loads of all ranks are recent. */
  of(worker: WorkerEntry): EngineReport | null {
    const oldestMs = performance.now() - MAX_AGE_MS
    const recent = [...(this.#byWorker.get(worker)?.values() ?? [])].filter(({ atMs }) => atMs >= oldestMs)
    const ranks = recent.map(({ load }) => load).sort((a, b) => a.rank - b.rank)
    const count = Number(worker.labels.dp_size ?? 1)
    return ranks.length > 0 && ranks.length >= count ? { timestamp: null, ranks } : null
  }
}

/** Under the names of load reports. */
function toRankLoad(rank: number, load: EngineLoad): RankLoad | undefined {
  const { runningRequests, waitingRequests, waitingUncachedTokens } = load
  const entry = {
    ...load,
    dpRank: rank,
    numRunningReqs: runningRequests,
    numWaitingReqs: waitingRequests,
    numWaitingUncachedTokens: waitingUncachedTokens,
  }
  return readLoads({ timestamp: '', loads: [entry] })?.ranks[0]
}
