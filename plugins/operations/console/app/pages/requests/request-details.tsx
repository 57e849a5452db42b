/** One past request: its timeline, its attempts and their candidates. */
import { bytes, count, dateTime, milliseconds, short, UNKNOWN } from '../../data/format.ts'
import { Badge, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Timeline } from './timeline.tsx'
import type { Attempt, Candidate, PastRequest } from './wire.ts'

export function RequestStatus({ request }: { request: PastRequest }) {
  const { status, error_code } = request
  return (
    <>
      <Badge tone={status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good'}>{status}</Badge>
      {error_code !== null && <small class="second">{error_code}</small>}
    </>
  )
}

export function RequestDetails({ request }: { request: PastRequest }) {
  const rows: readonly (readonly [string, string])[] = [
    ['Arrived', dateTime(request.started_at)],
    ['Route', `${request.method} ${request.path}`],
    ['Tenant', request.tenant],
    ['Model', request.model ?? UNKNOWN],
    ['Status', `${request.status}${request.error_code === null ? '' : `, ${request.error_code}`}`],
    ['Client', request.is_aborted ? 'disconnected before the end' : 'received the whole response'],
    [
      'Queue',
      milliseconds(
        request.steps
          .filter(({ kind }) => kind === 'queue')
          .reduce((sum, { duration_ms }) => sum + duration_ms, 0),
      ),
    ],
    ['First byte to the client', milliseconds(request.first_byte_ms)],
    ['Sent', bytes(request.bytes_out)],
    ['Modules', request.modules.join(', ') || 'none'],
    ['Thread', String(request.thread)],
  ]
  return (
    <Panel title={`Request ${request.request_id}`}>
      <dl class="details">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Timeline request={request} />
      {request.attempts.length === 0 && <p class="note">No worker was asked.</p>}
      {request.attempts.map((attempt) => (
        <AttemptDetails key={attempt.number} attempt={attempt} />
      ))}
    </Panel>
  )
}

function AttemptDetails({ attempt }: { attempt: Attempt }) {
  const { number, worker_url, policy, explanation, outcome, status, failure, error, candidates } = attempt
  return (
    <section class="attempt">
      <h3>
        Attempt {number}: {worker_url}, {outcome}
        {status !== null && `, status ${status}`}
        {failure !== null && `, ${failure}`}
      </h3>
      <p class="note">
        Picked by {policy}
        {explanation !== null && `: ${explanation}`}
      </p>
      {error !== null && <p class="failure">{error}</p>}
      {candidates !== null && candidates.length > 0 && (
        <Table
          label={`Candidates of attempt ${number}`}
          columns={candidateColumns}
          rows={candidates}
          keyOf={({ worker_id }) => worker_id}
          selected={attempt.worker_id}
        />
      )}
    </section>
  )
}

const candidateColumns: readonly Column<Candidate>[] = [
  { name: 'Candidate', show: ({ url }) => url },
  { name: 'In flight', isNumber: true, show: ({ in_flight }) => count(in_flight) },
  { name: 'Load score', isNumber: true, show: ({ load_score }) => short(load_score) },
  { name: 'Breaker', show: ({ breaker }) => breaker },
  { name: 'Available', show: ({ is_available }) => (is_available ? 'yes' : 'no') },
  { name: 'Suspect', show: ({ is_suspect }) => (is_suspect ? 'yes' : 'no') },
]
