/** Keeps the books on calls of one serving thread: counts, series, the breaker, and the log lines of guests. */
import type { Logger } from '#kernel'
import type { AttachPoint } from '../../wasm-sdk/abi.ts'
import type { CallReport, LoadedModule } from './guest-task.ts'
import type { ModuleMetrics, Outcome, SkipReason } from './module-metrics.ts'
import type { ModuleStats } from './module-stats.ts'
import type { Placements } from './placements.ts'

/** Which call it was. */
export interface CallFacts {
  readonly module: LoadedModule
  readonly point: AttachPoint
  readonly requestId: string
}

export class CallBook {
  readonly #stats: ModuleStats
  readonly #metrics: ModuleMetrics
  readonly #log: Logger
  readonly #placements: Placements

  constructor(stats: ModuleStats, metrics: ModuleMetrics, log: Logger, placements: Placements) {
    this.#placements = placements
    this.#stats = stats
    this.#metrics = metrics
    this.#log = log
  }

  isSuspended(module: LoadedModule): boolean {
    return this.#stats.isSuspended(module.row)
  }

  skip(module: LoadedModule, reason: SkipReason): void {
    this.#metrics.skipped(module, reason)
  }

  /** @param outcome of a call that went well */
  called(
    call: CallFacts,
    report: CallReport & { readonly droppedHeaders?: number },
    outcome: 'continue' | 'modify' | 'reject',
  ): void {
    const { module, requestId } = call
    for (const [level, text] of report.logs)
      this.#log[level]({ module: module.name, request_id: requestId }, text)
    this.#metrics.counted(module, report.counted)
    this.#placements.measured(module, report.fuel)
    this.#metrics.droppedHeaders(module, report.droppedHeaders ?? 0)
    const { failure, durationUs } = report
    if (failure === null) this.#count(call, outcome, durationUs)
    else this.failed(call, failure.kind, durationUs, failure.message)
  }

  /** A version that only watches would have done the same, or not. */
  compared({ module, point, requestId }: CallFacts, isSame: boolean): void {
    this.#metrics.compared(module, isSame)
    if (isSame) return
    const fields = {
      module: module.name,
      module_uuid: module.uuid,
      attach_point: point,
      request_id: requestId,
    }
    this.#log.debug(fields, 'a version on trial would have done something else')
  }

  failed(
    call: CallFacts,
    outcome: 'error' | 'bad_output' | 'fuel' | 'timeout' | 'crashed',
    durationUs: number,
    reason: string,
  ): void {
    const { module, point, requestId } = call
    const fields = { module: module.name, module_uuid: module.uuid, attach_point: point }
    this.#log.warn({ ...fields, request_id: requestId, outcome, reason }, 'a call of a WASM module failed')
    if (this.#count(call, outcome, durationUs))
      this.#log.error(fields, 'a WASM module keeps failing and is suspended')
  }

  /** @returns true when the module is suspended from now on */
  #count({ module, point }: CallFacts, outcome: Outcome, durationUs: number): boolean {
    this.#metrics.executed(module, point, outcome, durationUs)
    const isSuccess = outcome === 'continue' || outcome === 'modify' || outcome === 'reject'
    return this.#stats.count(module.row, durationUs, isSuccess)
  }
}
