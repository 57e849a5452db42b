/** One worker: everything known about it, and what can be changed. */
import { useState } from 'preact/hooks'
import { call } from '../../data/api.ts'
import { ago, count, milliseconds, percent, UNKNOWN } from '../../data/format.ts'
import { useMayWrite } from '../../data/session.ts'
import { Panel } from '../../parts/basics.tsx'
import { Confirm, Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/fields.tsx'
import { reasonOf } from './states.tsx'
import type { Worker } from './wire.ts'

export function WorkerDetails({ worker, reload }: { worker: Worker; reload: () => Promise<void> }) {
  const mayWrite = useMayWrite()
  const { traffic, engine, drained = false } = worker
  const rows: readonly (readonly [string, string])[] = [
    ['State', `${worker.status}${reasonOf(worker) === null ? '' : `: ${reasonOf(worker)}`}`],
    ['Models', worker.models?.map(({ id }) => id).join(', ') ?? 'any'],
    ['Engine', `${worker.runtime_type} over ${worker.connection_mode}, ${worker.worker_type}`],
    ['Formats', worker.apis?.join(', ') ?? UNKNOWN],
    ['Priority and cost', `${worker.priority}, cost ${worker.cost}`],
    [
      'Requests',
      traffic === undefined
        ? UNKNOWN
        : `${count(traffic.requests)} attempts, ${count(failuresOf(worker))} failed`,
    ],
    [
      'Failures by cause',
      traffic === undefined
        ? UNKNOWN
        : `${count(traffic.failures.answered)} error responses, ${count(traffic.failures.silent)} without a complete response, ${count(traffic.failures.unreachable)} without a connection`,
    ],
    ['Recent failures', percent(traffic?.failure_share)],
    ['First token', milliseconds(traffic?.ttft_ms)],
    ['Whole request', milliseconds(traffic?.duration_ms)],
    ['Running in the engine', count(engine?.running)],
    [
      'Last error',
      traffic?.last_error == null
        ? 'none'
        : `${traffic.last_error} (${ago((traffic.last_error_at ?? 0) * 1_000)})`,
    ],
    ['Id', worker.id],
    [
      'Labels',
      Object.entries(worker.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(', ') || UNKNOWN,
    ],
  ]
  return (
    <Panel
      title={worker.url}
      actions={
        mayWrite && (
          <>
            <ChangePriority worker={worker} reload={reload} />
            <Confirm
              label={drained ? 'End the drain' : 'Drain'}
              title={drained ? 'End the drain?' : 'Drain the worker?'}
              action={async () => {
                await call('PATCH', `/workers/${worker.id}`, { drained: !drained })
                await reload()
              }}
            >
              {drained
                ? `${worker.url} gets requests again while it is healthy.`
                : `${worker.url} gets no further requests, and stays registered; running requests finish.`}
            </Confirm>
            <Confirm
              label="Drain and remove"
              title="Drain and remove the worker?"
              isDanger
              action={async () => {
                await call('DELETE', `/workers/${worker.id}`)
                await reload()
              }}
            >
              {worker.url} gets no further requests; running requests finish before it is removed.
            </Confirm>
          </>
        )
      }
    >
      <dl class="details">
        {rows.map(([name, value]) => (
          <div key={name} class={name === 'Labels' ? 'wide' : ''}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  )
}

export function failuresOf({ traffic }: Worker): number | null {
  if (traffic === undefined) return null
  const { answered, silent, unreachable } = traffic.failures
  return answered + silent + unreachable
}

function ChangePriority({ worker, reload }: { worker: Worker; reload: () => Promise<void> }) {
  const [value, setValue] = useState<string | null>(null)
  if (value === null)
    return (
      <button type="button" onClick={() => setValue(String(worker.priority))}>
        Change priority
      </button>
    )
  return (
    <Dialog
      title="Change the priority"
      submit="Change"
      onClose={() => setValue(null)}
      onSubmit={async () => {
        await call('PATCH', `/workers/${worker.id}`, { priority: Number(value) })
        await reload()
      }}
    >
      <Field
        label="Priority"
        type="number"
        min={0}
        required
        value={value}
        onChange={setValue}
        hint="Workers with a higher priority are preferred. The default is 50."
      />
    </Dialog>
  )
}
