/** GET /readiness: whether the gateway can serve requests. */
import { type Host, Type } from '#kernel'

export const ReadyResponse = Type.Object({
  status: Type.Literal('ready'),
  healthy_workers: Type.Integer({ description: 'Workers in state ready.' }),
  total_workers: Type.Integer({ description: 'All registered workers.' }),
  open_breakers: Type.Optional(
    Type.Integer({
      description:
        'Ready workers whose circuit breaker is not closed; see GET /workers. Absent if there is none.',
    }),
  ),
})

export const NotReadyResponse = Type.Object({
  status: Type.Literal('not ready'),
  reason: Type.String({ description: 'Such as `insufficient healthy workers` or `draining`.' }),
})

export type Readiness = ReadyState | { readonly status: 'not ready'; readonly reason: string }

interface ReadyState {
  readonly status: 'ready'
  readonly healthy_workers: number
  readonly total_workers: number
  /** Ready workers whose circuit breaker is not closed; absent if there is none. */
  readonly open_breakers?: number
}

/**
 * Requires one ready regular worker, or one prefill and one decode worker.
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
