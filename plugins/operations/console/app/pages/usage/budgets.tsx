/** Budgets of the current periods. */
import { cost, dateTime, percent, short } from '../../data/format.ts'
import { useData } from '../../data/use-data.ts'
import { Bar, Empty, Loaded, Panel } from '../../parts/basics.tsx'
import { type Column, PagedTable } from '../../parts/table.tsx'
import type { Budget } from './wire.ts'

const REFRESH_MS = 10_000

export function Budgets() {
  const budgets = useData<{ budgets: readonly Budget[] }>('/usage/budgets', REFRESH_MS)
  return (
    <Panel title="Budgets">
      <Loaded data={budgets}>
        {({ budgets: rows }) =>
          rows.length === 0 ? (
            <Empty title="No budget is in use">
              Budgets are settings of the plugin usage; they are listed here from the first request on.
            </Empty>
          ) : (
            <PagedTable
              label="Budgets"
              what="budgets"
              pageSize={50}
              columns={columns}
              rows={rows}
              keyOf={({ tenant, key, period, unit }) => JSON.stringify([tenant, key, period, unit])}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const amount = ({ unit }: Budget, value: number) => (unit === 'cost' ? cost(value) : `${short(value)} tokens`)

const columns: readonly Column<Budget>[] = [
  { name: 'Tenant', show: ({ tenant }) => tenant },
  { name: 'Key', show: ({ key }) => key ?? 'all' },
  { name: 'Period', show: ({ period }) => period },
  { name: 'Budget', isNumber: true, show: (row) => amount(row, row.limit) },
  {
    name: 'Used',
    isNumber: true,
    show: (row) => (
      <Bar
        share={Math.min(1, row.limit === 0 ? 1 : row.used / row.limit)}
        text={amount(row, row.used)}
        label={`${percent(row.limit === 0 ? 1 : row.used / row.limit)} used`}
      />
    ),
  },
  { name: 'Left', isNumber: true, show: (row) => amount(row, Math.max(0, row.left)) },
  { name: 'Ends', show: ({ ends_at }) => dateTime(ends_at) },
]
