/** The fleet: a map by model, and the list of workers with their state. */
import { useState } from 'preact/hooks'
import { withQuery } from '../../data/api.ts'
import { ago, count, counted, milliseconds, percent, UNKNOWN } from '../../data/format.ts'
import { setParams, useRoute } from '../../data/route.ts'
import { useMayWrite } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Bar, Empty, Loaded, PageHead } from '../../parts/basics.tsx'
import { Field, Select } from '../../parts/fields.tsx'
import { type Column, Pager, Table } from '../../parts/table.tsx'
import { AddWorker } from './add-worker.tsx'
import { FleetMap } from './fleet-map.tsx'
import { Breaker, reasonOf, STATUSES, Status } from './states.tsx'
import type { Worker, WorkerList } from './wire.ts'
import { failuresOf, WorkerDetails } from './worker-details.tsx'

const REFRESH_MS = 2_000
const PAGE_SIZE = 50

export function Workers() {
  const { params } = useRoute()
  const { q = '', state = '', model = '', worker: selected = null } = params
  const [page, setPage] = useState({ filter: '', before: [] as readonly string[], after: '' })
  const filter = JSON.stringify([q, state, model])
  const { before, after } = page.filter === filter ? page : { before: [], after: '' }
  const isFiltered = q !== '' || state !== '' || model !== ''
  const path = withQuery('/workers', { limit: PAGE_SIZE, after, q, state, model })
  // A page without a filter has the figures of the whole fleet: a second request would draw the page twice.
  const all = useData<WorkerList>(isFiltered ? null : path, REFRESH_MS)
  const found = useData<WorkerList>(isFiltered ? path : null, REFRESH_MS)
  const fleet = useData<WorkerList>(isFiltered ? '/workers?limit=0' : null, REFRESH_MS)
  const list = isFiltered && (found.value !== null || found.error !== null) ? found : all
  const mayWrite = useMayWrite()
  const reload = async () => {
    await Promise.all([all, found, fleet].map((data) => data.reload()))
  }
  const whole = (isFiltered ? fleet.value : null) ?? all.value
  const models = whole?.stats.models ?? []
  return (
    <>
      <PageHead title="Workers">{mayWrite && <AddWorker reload={reload} />}</PageHead>
      {models.length > 0 && <FleetMap models={models} selected={model} />}
      <div class="filters">
        <Field label="Search" type="search" value={q} onChange={(text) => setParams({ q: text })} />
        <Select
          label="State"
          value={state}
          options={[['', 'all'], ...STATUSES.map(([value, text]) => [value, text] as const)]}
          onChange={(value) => setParams({ state: value })}
        />
        <Select
          label="Model"
          value={model}
          options={[['', 'all'], ...modelsWith(model, models)]}
          onChange={(value) => setParams({ model: value })}
        />
      </div>
      <Loaded data={list}>
        {({ workers, total, has_more, last_id }) => {
          const shown = workers.find(({ id }) => id === selected)
          if (total === 0 && whole?.total === 0)
            return <Empty title="No workers">Add the first one, or list workers in the configuration.</Empty>
          if (workers.length === 0) return <Empty title="No worker matches the filter" />
          return (
            <>
              <Table
                label="Workers"
                columns={columnsOf(medianFirstToken(workers))}
                rows={workers}
                keyOf={({ id }) => id}
                selected={selected}
                onSelect={(id) => setParams({ worker: id === selected ? '' : id })}
              />
              <Pager
                before={before}
                after={after}
                next={has_more ? last_id : null}
                note={`${count(workers.length)} of ${counted(total, 'workers')}`}
                onChange={(pages, cursor) => setPage({ filter, before: pages, after: cursor })}
              />
              {shown !== undefined && <WorkerDetails worker={shown} reload={reload} />}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

/** The models of the fleet, and the filtered one even if no worker has it any more. */
function modelsWith(selected: string, models: readonly { readonly model: string | null }[]) {
  const names = models.flatMap(({ model }) => (model === null ? [] : [model]))
  return [...new Set(selected === '' ? names : [selected, ...names])].map((name) => [name, name] as const)
}

/** Median time to the first token by model, of the workers shown; models with one worker have no peers. */
function medianFirstToken(workers: readonly Worker[]): ReadonlyMap<string, number> {
  const times = Map.groupBy(
    workers.filter(({ traffic }) => traffic?.ttft_ms != null),
    ({ model_id }) => model_id ?? '',
  )
  return new Map(
    [...times]
      .filter(([, peers]) => peers.length > 1)
      .map(([model, peers]) => {
        const sorted = peers.map(({ traffic }) => traffic?.ttft_ms ?? 0).sort((a, b) => a - b)
        return [model, sorted[Math.floor((sorted.length - 1) / 2)]]
      }),
  )
}

function columnsOf(medians: ReadonlyMap<string, number>): readonly Column<Worker>[] {
  return [
    { name: 'Worker', show: ({ url }) => url },
    { name: 'State', show: (worker) => <State worker={worker} /> },
    {
      name: 'Model',
      show: ({ models, model_id }) =>
        model_id === undefined
          ? 'any'
          : `${model_id}${(models?.length ?? 1) > 1 ? ` +${(models?.length ?? 1) - 1}` : ''}`,
    },
    {
      name: 'Last error',
      show: ({ traffic }) =>
        traffic?.last_error == null ? (
          UNKNOWN
        ) : (
          <span class="second" title={traffic.last_error}>
            {ago((traffic.last_error_at ?? 0) * 1_000)}: {traffic.last_error}
          </span>
        ),
    },
    { name: 'Breaker', show: ({ breaker }) => <Breaker state={breaker} /> },
    { name: 'Priority', isNumber: true, show: ({ priority }) => priority },
    { name: 'In flight', isNumber: true, show: ({ load }) => count(load) },
    { name: 'Queue', isNumber: true, show: ({ engine }) => count(engine?.waiting) },
    {
      name: 'KV cache',
      isNumber: true,
      show: ({ engine }) => (
        <Bar share={engine?.kv_usage ?? null} text={percent(engine?.kv_usage)} label="KV cache in use" />
      ),
    },
    { name: 'Cache hits', isNumber: true, show: ({ engine }) => percent(engine?.cache_hit_rate) },
    {
      name: 'First token',
      isNumber: true,
      show: (worker) => <FirstToken worker={worker} medians={medians} />,
    },
    { name: 'Failures', isNumber: true, show: (worker) => count(failuresOf(worker)) },
  ]
}

function State({ worker }: { worker: Worker }) {
  const reason = reasonOf(worker)
  return (
    <>
      <Status worker={worker} />
      {reason !== null && (
        <small class="second" title={reason}>
          {reason}
        </small>
      )}
    </>
  )
}

/** With its ratio to the median of its peers. */
function FirstToken({ worker, medians }: { worker: Worker; medians: ReadonlyMap<string, number> }) {
  const time = worker.traffic?.ttft_ms ?? null
  const median = medians.get(worker.model_id ?? '')
  if (time === null || !median) return <>{milliseconds(time)}</>
  const ratio = time / median
  return (
    <>
      {milliseconds(time)}{' '}
      <small class={ratio > 1.5 ? 'bad' : ''} title="Relative to the median of the workers of its model">
        ×{ratio.toFixed(1)}
      </small>
    </>
  )
}
