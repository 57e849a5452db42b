/** States of workers in words and colors. */
import { count } from '../../data/format.ts'
import { Badge, type Tone } from '../../parts/basics.tsx'
import type { Worker, WorkerStatus } from './wire.ts'

export const STATUSES: readonly (readonly [WorkerStatus, string, Tone])[] = [
  ['ready', 'ready', 'good'],
  ['not_ready', 'not ready', 'bad'],
  ['pending', 'pending', 'warn'],
  ['draining', 'draining', 'warn'],
  ['drained', 'drained', 'idle'],
  ['failed', 'failed', 'bad'],
]

export function Status({ worker }: { worker: Worker }) {
  const [, text, tone] = STATUSES.find(([name]) => name === worker.status) ?? ['', worker.status, 'idle']
  const isBusy = worker.status === 'drained' && worker.load > 0
  return <Badge tone={tone as Tone}>{isBusy ? `drained, ${count(worker.load)} in flight` : text}</Badge>
}

/** Why the worker is not ready, not preferred, or to be corrected; null if it is as it should be. */
export function reasonOf({ status, status_reason, warnings, job_status, traffic }: Worker): string | null {
  if (status_reason !== undefined) return status_reason
  if (job_status?.message != null) return job_status.message
  if (traffic?.is_stalled === true) return 'its streams have stalled'
  const error = status === 'not_ready' ? traffic?.last_error : null
  return error ?? warnings?.[0] ?? null
}

export function Breaker({ state }: { state: Worker['breaker'] }) {
  if (state === undefined) return <>–</>
  return (
    <Badge tone={state === 'closed' ? 'good' : state === 'open' ? 'bad' : 'warn'}>
      {state.replace('_', ' ')}
    </Badge>
  )
}
