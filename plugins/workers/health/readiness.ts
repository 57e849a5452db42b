/** Says whether the gateway can serve: what /readiness shows, from the state of the workers and of the plugins. */
import type { Host } from '#kernel'

export type Readiness = ReadyState | { readonly status: 'not ready'; readonly reason: string }

interface ReadyState {
  readonly status: 'ready'
  readonly healthy_workers: number
  readonly total_workers: number
  /** Ready workers whose breaker holds requests back; absent where there is none. */
  readonly open_breakers?: number
}

/**
 * Enough workers means one that serves alone, or one of each half where prefill and decode are split.
 */
export function readReadiness(host: Pick<Host, 'balance' | 'isDraining' | 'readinessReason'>): Readiness {
  if (host.isDraining) return { status: 'not ready', reason: 'draining' }
  const { workers } = host.balance
  const ready = workers.filter((worker) => host.balance.status(worker.slot) === 'ready')
  const serves = (type: string) => ready.some((worker) => worker.workerType === type)
  if (!serves('regular') && !(serves('prefill') && serves('decode'))) {
    return { status: 'not ready', reason: 'insufficient healthy workers' }
  }
  const reason = host.readinessReason()
  if (reason !== null) return { status: 'not ready', reason }
  const counts = { healthy_workers: ready.length, total_workers: workers.length }
  const open = ready.filter((worker) => host.balance.breakerState(worker.slot) !== 'closed').length
  return { status: 'ready', ...counts, ...(open > 0 && { open_breakers: open }) }
}
