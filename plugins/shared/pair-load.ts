/** What engines of pairs say of the hand-over, in the words that their reports have in common. */
import type { PairLoad } from '#kernel'

const UNTOLD = -1

/** As engines write it: over HTTP in these names. */
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

/** @returns undefined where the engine serves whole requests, or says nothing of it */
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
  const told = queues.map(toNumber).filter((count) => count !== UNTOLD)
  return {
    role,
    queuedRequests: told.length === 0 ? UNTOLD : told.reduce((sum, count) => sum + count, 0),
    transferMs: toNumber(report.kv_transfer_latency_ms),
    transferRate: toNumber(report.kv_transfer_speed_gb_s),
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : UNTOLD
}
