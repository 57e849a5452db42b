/** Call statistics of one data thread: counters, metrics, circuit breaker and log lines of guests. */
import type { Logger } from '#kernel'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { CallReport, LoadedModule, LogLine } from '../threads/guest-task.ts'
import type { Placements } from '../threads/placements.ts'
import type { KeptLine } from './module-logs.ts'
import type { ModuleMetrics, Outcome, SkipReason } from './module-metrics.ts'
import type { ModuleStats } from './module-stats.ts'

const MAX_LINES_PER_SECOND = 100

type Failure = 'error' | 'bad_output' | 'fuel' | 'timeout' | 'crashed'

/** Which call it was. */
export interface CallFacts {
  readonly module: LoadedModule
  readonly point: AttachPoint
  readonly requestId: string
}

interface StatisticsParts {
  readonly stats: ModuleStats
  readonly metrics: ModuleMetrics
  readonly log: Logger
  readonly placements: Placements
  /** Receives each line that is logged for a call. */
  keep(line: KeptLine): void
}

export class CallStatistics {
  readonly #stats: ModuleStats
  readonly #metrics: ModuleMetrics
  readonly #log: Logger
  readonly #keep: StatisticsParts['keep']
  readonly #placements: Placements
  /** Log lines of the current second by module. */
  readonly #lines = new Map<string, number>()
  #second = 0

  constructor({ stats, metrics, log, keep, placements }: StatisticsParts) {
    this.#placements = placements
    this.#stats = stats
    this.#metrics = metrics
    this.#log = log
    this.#keep = keep
  }

  isSuspended(module: LoadedModule): boolean {
    return this.#stats.isSuspended(module.row)
  }

  skip(module: LoadedModule, reason: SkipReason): void {
    this.#metrics.skipped(module, reason)
    if (this.#mayLog(module)) this.#log.warn({ module: module.name, reason }, 'wasm module skipped')
  }

  /** Limits the log lines of one module per second. */
  #mayLog({ uuid }: LoadedModule): boolean {
    const second = Math.floor(performance.now() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#lines.clear()
    }
    const lines = (this.#lines.get(uuid) ?? 0) + 1
    this.#lines.set(uuid, lines)
    return lines <= MAX_LINES_PER_SECOND
  }

  /** @param outcome of a successful call */
  called(
    call: CallFacts,
    report: CallReport & { readonly droppedHeaders?: number },
    outcome: Exclude<Outcome, Failure>,
  ): void {
    const { module } = call
    if (report.logs.length > 0) this.#write(call, report.logs)
    this.#metrics.droppedLines(module, report.droppedLogs)
    this.#metrics.noted(module, report)
    this.#placements.measured(module, report.fuel)
    this.#metrics.droppedHeaders(module, report.droppedHeaders ?? 0)
    const { failure, durationUs } = report
    if (failure === null) this.#count(call, outcome, durationUs, report.fuel, true)
    else this.failed(call, failure.kind, durationUs, failure.message, report.fuel)
  }

  #write(call: CallFacts, lines: readonly LogLine[]): void {
    const { module, requestId } = call
    for (const [level, text] of lines) {
      if (!this.#mayLog(module)) {
        this.#metrics.droppedLines(module, 1)
        continue
      }
      this.#log[level]({ module: module.name, request_id: requestId }, text)
      this.#keepLine(call, level, text)
    }
  }

  #keepLine({ module, requestId }: CallFacts, level: LogLine[0], text: string): void {
    this.#keep({ uuid: module.uuid, atMs: Date.now(), level, requestId, text })
  }

  /** The thread of a call ended. The duration is known only if the call was stopped at its deadline. */
  lost(call: CallFacts, how: 'timeout' | 'crashed'): void {
    const { timeoutMs } = call.module
    if (how === 'crashed') this.failed(call, how, 0, 'the guest thread exited')
    else this.failed(call, how, timeoutMs * 1_000, `no result within ${timeoutMs} ms`)
  }

  failed(call: CallFacts, outcome: Failure, durationUs: number, reason: string, fuel = 0): void {
    const { module, point, requestId } = call
    const fields = { module: module.name, module_uuid: module.uuid, attach_point: point }
    if (this.#mayLog(module)) {
      this.#log.warn({ ...fields, request_id: requestId, outcome, reason }, 'wasm module call failed')
      this.#keepLine(call, 'warn', `call failed at ${point} (${outcome}): ${reason}`)
    } else this.#metrics.droppedLines(module, 1)
    if (this.#count(call, outcome, durationUs, fuel, false)) this.#log.error(fields, 'wasm module suspended')
  }

  /** @returns true if this call suspends the module */
  #count(
    { module, point }: CallFacts,
    outcome: Outcome,
    durationUs: number,
    fuel: number,
    isSuccess: boolean,
  ): boolean {
    this.#metrics.executed(module, point, outcome, durationUs, fuel)
    return this.#stats.count(module.row, durationUs, isSuccess, fuel, outcome !== 'fetch')
  }
}
