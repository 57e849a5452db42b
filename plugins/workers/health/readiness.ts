/** GET /readiness: whether the gateway can serve requests, and what it does without. */
import { type Host, type PendingWorkers, PendingWorkersReplica, type Static, Type } from '#kernel'

const counts = {
  healthy_workers: Type.Integer({ description: 'Workers in state ready.' }),
  total_workers: Type.Integer({ description: 'All registered workers.' }),
  configured_workers: Type.Integer({ description: 'Workers in the configuration.' }),
  pending_workers: Type.Integer({
    description: 'Workers that have not responded yet, so that they are not registered; configured or not.',
  }),
}

const degraded = Type.Optional(
  Type.Array(Type.Object({ service: Type.String(), problem: Type.String() }), {
    description:
      'Services that are down. Requests that need them get 503; others are served. Absent if there is none.',
  }),
)

export const ReadyResponse = Type.Object({
  status: Type.Literal('ready'),
  ...counts,
  open_breakers: Type.Optional(
    Type.Integer({
      description:
        'Ready workers whose circuit breaker is not closed; see GET /workers. Absent if there is none.',
    }),
  ),
  missing: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'What the gateway does not wait for any longer, such as `1 of 3 configured workers not yet registered`.',
    }),
  ),
  degraded,
})

export const NotReadyResponse = Type.Object({
  status: Type.Literal('not ready'),
  reason: Type.String({ description: 'Such as `insufficient healthy workers` or `draining`.' }),
  ...counts,
  degraded,
})

export type Readiness = Static<typeof ReadyResponse> | Static<typeof NotReadyResponse>

export type ReadinessHost = Pick<
  Host,
  'balance' | 'isDraining' | 'readinessReason' | 'missingAtStartup' | 'outages'
>

/** Reads the readiness of a thread. */
export function openReadiness(host: ReadinessHost & Pick<Host, 'replica'>): () => Readiness {
  const pending = host.replica(PendingWorkersReplica)
  return () => readReadiness(host, pending.current)
}

/** Requires one ready regular worker, or one prefill and one decode worker. Outages do not count. */
export function readReadiness(host: ReadinessHost, { count, configured }: PendingWorkers): Readiness {
  const { workers } = host.balance
  const ready = workers.filter((worker) => host.balance.status(worker.slot) === 'ready')
  const outages = host.outages()
  const facts = {
    healthy_workers: ready.length,
    total_workers: workers.length,
    configured_workers: configured,
    pending_workers: count,
    ...(outages.length > 0 && { degraded: [...outages] }),
  }
  if (host.isDraining) return { status: 'not ready', reason: 'draining', ...facts }
  const serves = (type: string) => ready.some((worker) => worker.workerType === type)
  if (!serves('regular') && !(serves('prefill') && serves('decode')))
    return { status: 'not ready', reason: 'insufficient healthy workers', ...facts }
  const reason = host.readinessReason()
  if (reason !== null) return { status: 'not ready', reason, ...facts }
  const open = ready.filter((worker) => host.balance.breakerState(worker.slot) !== 'closed').length
  const missing = host.missingAtStartup()
  return {
    status: 'ready',
    ...facts,
    ...(open > 0 && { open_breakers: open }),
    ...(missing.length > 0 && { missing: [...missing] }),
  }
}
