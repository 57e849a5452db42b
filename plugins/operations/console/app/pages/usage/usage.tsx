/** Tokens and costs by tenant, model, key and day, and budgets with what is left of them. */
import { withQuery } from '../../data/api.ts'
import { cost, count, short } from '../../data/format.ts'
import { setParams, useRoute } from '../../data/route.ts'
import { useData } from '../../data/use-data.ts'
import { Empty, Figure, Loaded, PageHead } from '../../parts/basics.tsx'
import { Chart } from '../../parts/chart.tsx'
import { Field } from '../../parts/fields.tsx'
import { type Column, PagedTable } from '../../parts/table.tsx'
import { Budgets } from './budgets.tsx'
import { toCsv } from './csv.ts'
import { GROUPS, type Group, type Report, type UsageRow } from './wire.ts'

const REFRESH_MS = 10_000

export function Usage() {
  const { params } = useRoute()
  const { from = '', to = '', tenant = '', model = '', by = 'tenant,model' } = params
  const groups = GROUPS.filter((group) => by.split(',').includes(group))
  const filters = { from, to, tenant, model }
  const report = useData<Report>(withQuery('/usage', { ...filters, group_by: groups.join(',') }), REFRESH_MS)
  const days = useData<Report>(withQuery('/usage', { ...filters, group_by: 'day' }), REFRESH_MS)
  const toggle = (group: Group) => {
    const next = groups.includes(group) ? groups.filter((known) => known !== group) : [...groups, group]
    // The route needs one group at least.
    if (next.length > 0) setParams({ by: next.join(',') })
  }
  return (
    <>
      <PageHead title="Usage">
        {report.value !== null && <Download report={report.value} groups={groups} />}
      </PageHead>
      <div class="filters">
        <Field label="From (UTC)" type="date" value={from} onChange={(value) => setParams({ from: value })} />
        <Field label="To (UTC)" type="date" value={to} onChange={(value) => setParams({ to: value })} />
        <Field
          label="Tenant"
          type="search"
          value={tenant}
          placeholder="auth:team-a"
          onChange={(value) => setParams({ tenant: value })}
        />
        <Field label="Model" type="search" value={model} onChange={(value) => setParams({ model: value })} />
        <fieldset class="field groups">
          <legend>Group by</legend>
          {GROUPS.map((group) => (
            <label key={group}>
              <input type="checkbox" checked={groups.includes(group)} onChange={() => toggle(group)} />{' '}
              {group}
            </label>
          ))}
        </fieldset>
      </div>
      <Loaded data={report}>
        {(loaded) => (
          <>
            <Totals report={loaded} />
            {(days.value?.data.length ?? 0) > 1 && <Days rows={days.value?.data ?? []} />}
            {loaded.data.length === 0 ? (
              <Empty title="No usage in this time" />
            ) : (
              <Rows key={by} rows={loaded.data} groups={groups} />
            )}
          </>
        )}
      </Loaded>
      <Budgets />
    </>
  )
}

function Totals({ report: { from, to, total } }: { report: Report }) {
  return (
    <dl class="figures" aria-label={`From ${from} to ${to}`}>
      <Figure
        label="Cost"
        value={cost(total.cost)}
        note={
          <>
            <span class="date">{from}</span> to <span class="date">{to}</span>
          </>
        }
      />
      <Figure label="Requests" value={short(total.requests)} />
      <Figure
        label="Input tokens"
        value={short(total.input_tokens)}
        note={`${short(total.cached_tokens)} from a cache`}
      />
      <Figure
        label="Output tokens"
        value={short(total.output_tokens)}
        note={`${short(total.reasoning_tokens)} of reasoning`}
      />
    </dl>
  )
}

function Days({ rows }: { rows: readonly UsageRow[] }) {
  const times = rows.map(({ day }) => Date.parse(`${day}T00:00:00Z`))
  const line = (label: string, values: readonly number[]) => ({ label, values })
  return (
    <div class="charts">
      <Chart
        title="Cost by day"
        times={times}
        print={cost}
        series={[
          line(
            'cost',
            rows.map((row) => row.cost),
          ),
        ]}
      />
      <Chart
        title="Tokens by day"
        times={times}
        print={short}
        series={[
          line(
            'input',
            rows.map((row) => row.input_tokens),
          ),
          line(
            'output',
            rows.map((row) => row.output_tokens),
          ),
        ]}
      />
    </div>
  )
}

function Rows({ rows, groups }: { rows: readonly UsageRow[]; groups: readonly Group[] }) {
  const columns: readonly Column<UsageRow>[] = [
    ...groups.map((group) => ({ name: titles[group], show: (row: UsageRow) => row[group] ?? 'none' })),
    { name: 'Requests', isNumber: true, show: ({ requests }) => count(requests) },
    { name: 'Input tokens', isNumber: true, show: ({ input_tokens }) => count(input_tokens) },
    { name: 'Cached', isNumber: true, show: ({ cached_tokens }) => count(cached_tokens) },
    { name: 'Output tokens', isNumber: true, show: ({ output_tokens }) => count(output_tokens) },
    { name: 'Reasoning', isNumber: true, show: ({ reasoning_tokens }) => count(reasoning_tokens) },
    { name: 'Cost', isNumber: true, show: (row) => cost(row.cost) },
  ]
  return (
    <PagedTable
      label="Usage"
      what="rows"
      pageSize={50}
      columns={columns}
      rows={rows}
      keyOf={(row) => JSON.stringify(groups.map((group) => row[group]))}
    />
  )
}

const titles: Readonly<Record<Group, string>> = { day: 'Day', tenant: 'Tenant', key: 'Key', model: 'Model' }

function Download({ report, groups }: { report: Report; groups: readonly Group[] }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([toCsv(report, groups)], { type: 'text/csv' }))
    const link = document.createElement('a')
    link.href = url
    link.download = `usage-${report.from}-${report.to}.csv`
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" onClick={save}>
      Download CSV
    </button>
  )
}
