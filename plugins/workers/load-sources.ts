/** Where an engine tells its load, and which of these places an engine has: a missing one is not asked for ever. */
import type { RuntimeType, WorkerReply } from '#kernel'
import { type RankReport, readRankReports, toRankReports } from './engine-report.ts'
import { readGauges } from './load-report.ts'
import { type CallTarget, type CallWorker, isGoodStatus } from './probe.ts'

/** @source routes facts 17.2, routing facts 1.9 */
const LOADS_PATH = '/v1/loads?include=core,disagg,queues,memory'
const CALL_TIMEOUT_MS = 5_000
const MAX_REPLY_BYTES = 8_388_608

/** A source that an engine lacks is tried again after this, each time after twice as long. */
const FIRST_BACK_OFF_MS = 30_000
const MAX_BACK_OFF_MS = 900_000

type Source = 'loads' | 'metrics'

/** In the order in which they are asked. @source routing facts 1.9 */
const SOURCES_OF: ReadonlyMap<string, readonly Source[]> = new Map([
  ['sglang', ['loads', 'metrics']],
  ['vllm', ['metrics', 'loads']],
  ['trtllm', ['loads']],
  ['mlx', ['loads']],
  ['unspecified', ['loads']],
  // Cloud services have no reports.
  ['external', []],
])

export function askLoads(call: CallWorker, target: CallTarget): Promise<WorkerReply> {
  return ask(call, target, LOADS_PATH)
}

export function askMetricsPage(call: CallWorker, target: CallTarget): Promise<WorkerReply> {
  return ask(call, target, '/metrics')
}

function ask(call: CallWorker, target: CallTarget, path: string): Promise<WorkerReply> {
  return call(target, { method: 'GET', path, timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_REPLY_BYTES })
}

/** The JSON of an answer; null when it is none. */
export function jsonOf(reply: WorkerReply): unknown {
  try {
    return reply.json()
  } catch {
    return null
  }
}

interface Absence {
  readonly untilMs: number
  readonly backOffMs: number
}

/** The sources of one engine, with a memory of those that it lacks. */
export class LoadSources {
  readonly #call: CallWorker
  readonly #absences = new Map<Source, Absence>()

  constructor(call: CallWorker) {
    this.#call = call
  }

  /**
   * Asks the first source that answers.
   * @param nowMs of a clock that only goes forward
   * @returns null when none does; never throws
   */
  async read(target: CallTarget, runtime: RuntimeType, nowMs: number): Promise<readonly RankReport[] | null> {
    for (const source of SOURCES_OF.get(runtime) ?? []) {
      if (nowMs < (this.#absences.get(source)?.untilMs ?? 0)) continue
      let reply: WorkerReply
      try {
        reply = await (source === 'loads' ? askLoads(this.#call, target) : askMetricsPage(this.#call, target))
      } catch {
        // The engine is not to be reached: another route would not be either.
        return null
      }
      const reports = isGoodStatus(reply.status) ? readReply(source, reply) : null
      if (reports !== null) {
        this.#absences.delete(source)
        return reports
      }
      if (reply.status < 500) this.#noteAbsence(source, nowMs)
    }
    return null
  }

  #noteAbsence(source: Source, nowMs: number): void {
    const last = this.#absences.get(source)
    const backOffMs = last === undefined ? FIRST_BACK_OFF_MS : Math.min(MAX_BACK_OFF_MS, last.backOffMs * 2)
    this.#absences.set(source, { untilMs: nowMs + backOffMs, backOffMs })
  }
}

function readReply(source: Source, reply: WorkerReply): readonly RankReport[] | null {
  if (source === 'loads') return readRankReports(jsonOf(reply))
  try {
    const gauges = readGauges(reply.body.toString(), '')
    return gauges === null ? null : toRankReports(gauges)
  } catch {
    return null
  }
}
