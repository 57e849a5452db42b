/** Past requests: a filtered list, and one of them in detail. */
import { useState } from 'preact/hooks'
import { withQuery } from '../../data/api.ts'
import { ago, counted, milliseconds, UNKNOWN } from '../../data/format.ts'
import { setParams, useRoute } from '../../data/route.ts'
import { useData } from '../../data/use-data.ts'
import { Empty, Loaded, PageHead } from '../../parts/basics.tsx'
import { Field, Select } from '../../parts/fields.tsx'
import { type Column, Pager, Table } from '../../parts/table.tsx'
import { RequestDetails, RequestStatus } from './request-details.tsx'
import type { PastRequest, RequestPage } from './wire.ts'

const REFRESH_MS = 2_000
const PAGE_SIZE = 50

const STATUSES: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['2xx', 'successful (2xx)'],
  ['4xx', 'rejected (4xx)'],
  ['5xx', 'failed (5xx)'],
  ['429', '429 rate limited'],
  ['499', '499 client disconnected'],
]

export function Requests() {
  const { params } = useRoute()
  const { tenant = '', model = '', worker = '', status = '', id = '' } = params
  const filters = { tenant, model, worker, status }
  const [page, setPage] = useState({ filter: '', before: [] as readonly string[], after: '' })
  const filter = JSON.stringify(filters)
  const { before, after } = page.filter === filter ? page : { before: [], after: '' }
  // Only the first page changes while it is shown.
  const list = useData<RequestPage>(
    withQuery('/debug/requests', { ...filters, limit: PAGE_SIZE, after }),
    after === '' ? REFRESH_MS : 0,
  )
  const field = (label: string, name: keyof typeof filters) => (
    <Field
      label={label}
      type="search"
      value={filters[name]}
      onChange={(value) => setParams({ [name]: value })}
    />
  )
  return (
    <>
      <PageHead title="Requests" />
      <FindRequest key={id} id={id} />
      {id !== '' && <OneRequest id={id} />}
      <div class="filters">
        {field('Tenant', 'tenant')}
        {field('Model', 'model')}
        {field('Worker', 'worker')}
        <Select
          label="Status"
          value={status}
          options={STATUSES}
          onChange={(value) => setParams({ status: value })}
        />
      </div>
      <Loaded data={list}>
        {({ requests, has_more, last_id }) =>
          requests.length === 0 ? (
            <Empty title={filter === NO_FILTER ? 'No requests yet' : 'No request matches the filters'}>
              Requests are listed when they end.
            </Empty>
          ) : (
            <>
              <Table
                label="Requests"
                columns={columns}
                rows={requests}
                keyOf={keyOfRequest}
                selected={requests.map(keyOfRequest).find((key) => key.split(' ')[0] === id)}
                onSelect={(key) => {
                  const chosen = key.split(' ')[0]
                  setParams({ id: chosen === id ? '' : chosen })
                }}
              />
              <Pager
                before={before}
                after={after}
                next={has_more ? last_id : null}
                note={`${counted(requests.length, 'requests')}, latest first`}
                onChange={(pages, cursor) => setPage({ filter, before: pages, after: cursor })}
              />
            </>
          )
        }
      </Loaded>
    </>
  )
}

const NO_FILTER = JSON.stringify({ tenant: '', model: '', worker: '', status: '' })
/** Ids of clients may repeat. */
const keyOfRequest = ({ request_id, started_at }: PastRequest) => `${request_id} ${started_at}`

function FindRequest({ id }: { id: string }) {
  const [text, setText] = useState(id)
  const find = (event: Event) => {
    event.preventDefault()
    setParams({ id: text.trim() })
  }
  return (
    <form class="filters find" onSubmit={find}>
      <Field label="Request id (x-request-id)" type="search" value={text} onChange={setText} />
      <button type="submit">Show</button>
    </form>
  )
}

function OneRequest({ id }: { id: string }) {
  const found = useData<{ requests: readonly PastRequest[] }>(`/debug/requests/${encodeURIComponent(id)}`)
  return (
    <Loaded data={found}>
      {({ requests }) => (
        <>
          {requests.map((request) => (
            <RequestDetails key={keyOfRequest(request)} request={request} />
          ))}
        </>
      )}
    </Loaded>
  )
}

const columns: readonly Column<PastRequest>[] = [
  { name: 'Request', show: ({ request_id }) => <span class="cut">{request_id}</span> },
  { name: 'Arrived', show: ({ started_at }) => ago(Date.parse(started_at)) },
  { name: 'Status', show: (request) => <RequestStatus request={request} /> },
  { name: 'Tenant', show: ({ tenant }) => tenant },
  { name: 'Model', show: ({ model }) => model ?? UNKNOWN },
  { name: 'Route', show: ({ path }) => path },
  { name: 'Worker', show: ({ attempts }) => attempts.at(-1)?.worker_url ?? UNKNOWN },
  { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts.length },
  { name: 'First byte', isNumber: true, show: ({ first_byte_ms }) => milliseconds(first_byte_ms) },
  { name: 'Duration', isNumber: true, show: ({ duration_ms }) => milliseconds(duration_ms) },
]
