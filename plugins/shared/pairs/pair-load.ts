/** Reads the load report of engines in prefill/decode pairs. */
import type { PairLoad } from '#kernel'

const NOT_REPORTED = -1

/** Members of the report, as engines send them over HTTP. */
export interface DisaggregationReport {
  readonly mode?: unknown
  readonly prefill_prealloc_queue_reqs?: unknown
  readonly prefill_inflight_queue_reqs?: unknown
  readonly decode_prealloc_queue_reqs?: unknown
  readonly decode_transfer_queue_reqs?: unknown
  readonly decode_retracted_queue_reqs?: unknown
  readonly kv_transfer_speed_gb_s?: unknown
  readonly kv_transfer_latency_ms?: unknown
}

/** @returns undefined if the engine is not part of a pair or does not report it */
export function toPairLoad(report: DisaggregationReport | null | undefined): PairLoad | undefined {
  const role = report?.mode
  if (report === null || report === undefined || (role !== 'prefill' && role !== 'decode')) return undefined
  const queues =
    role === 'prefill'
      ? [report.prefill_prealloc_queue_reqs, report.prefill_inflight_queue_reqs]
      : [
          report.decode_prealloc_queue_reqs,
          report.decode_transfer_queue_reqs,
          report.decode_retracted_queue_reqs,
        ]
  const reported = queues.map(toNumber).filter((count) => count !== NOT_REPORTED)
  return {
    role,
    queuedRequests: reported.length === 0 ? NOT_REPORTED : reported.reduce((sum, count) => sum + count, 0),
    transferMs: toNumber(report.kv_transfer_latency_ms),
    transferRate: toNumber(report.kv_transfer_speed_gb_s),
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : NOT_REPORTED
}
