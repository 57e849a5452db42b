/** Where an engine tells its load, and which of these places an engine has: a missing one is not asked for ever. */
import type { EngineReport, RuntimeType, WorkerReply, WorkerTarget } from '#kernel'
import { readReport } from './engine-report.ts'
import { readGauges } from './gauges.ts'
import { type CallWorker, isGoodStatus } from './probe.ts'

const LOADS_PATH = '/v1/loads?include=core,disagg,queues,memory'
const CALL_TIMEOUT_MS = 5_000
const MAX_REPLY_BYTES = 8_388_608

/** A source that an engine lacks is tried again after this, each time after twice as long. */
const FIRST_BACK_OFF_MS = 30_000
const MAX_BACK_OFF_MS = 900_000

type Source = 'loads' | 'metrics'

/** In the order in which they are asked. */
const SOURCES_OF: ReadonlyMap<string, readonly Source[]> = new Map([
  ['sglang', ['loads', 'metrics']],
  ['vllm', ['metrics', 'loads']],
  ['trtllm', ['loads']],
  ['mlx', ['loads']],
  ['llamacpp', ['metrics']],
  ['unspecified', ['loads']],
  // Cloud services have no reports.
  ['external', []],
])

const PATH_OF: Readonly<Record<Source, string>> = { loads: LOADS_PATH, metrics: '/metrics' }

function ask(call: CallWorker, target: WorkerTarget, source: Source): Promise<WorkerReply> {
  const path = PATH_OF[source]
  return call(target, { method: 'GET', path, timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_REPLY_BYTES })
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
  async read(target: WorkerTarget, runtime: RuntimeType, nowMs: number): Promise<EngineReport | null> {
    for (const source of SOURCES_OF.get(runtime) ?? []) {
      if (nowMs < (this.#absences.get(source)?.untilMs ?? 0)) continue
      let reply: WorkerReply
      try {
        reply = await ask(this.#call, target, source)
      } catch {
        // The engine is not to be reached: another route would not be either.
        return null
      }
      const report = isGoodStatus(reply.status) ? readReply(source, reply) : null
      if (report !== null) {
        this.#absences.delete(source)
        return report
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

/** Null when it is no report. */
function readReply(source: Source, reply: WorkerReply): EngineReport | null {
  try {
    if (source === 'loads') return readReport(reply.json())
    const load = readGauges(reply.body.toString())
    return load === null ? null : { timestamp: null, ranks: [load] }
  } catch {
    return null
  }
}
