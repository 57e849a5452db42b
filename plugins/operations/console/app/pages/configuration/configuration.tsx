/** The effective configuration with the source of each value, and how it differs from the file. */
import { useState } from 'preact/hooks'
import { call } from '../../data/api.ts'
import { setParams, useRoute } from '../../data/route.ts'
import { useMayWrite } from '../../data/session.ts'
import { type Data, useData } from '../../data/use-data.ts'
import { Badge, Empty, Failure, Loaded, PageHead, Panel } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Field, Select } from '../../parts/fields.tsx'
import { type Column, PagedTable } from '../../parts/table.tsx'

interface Setting {
  readonly path: string
  readonly value: unknown
  readonly source: string
}

/** Response of GET /config. */
interface Configuration {
  /** Null without a file. */
  readonly file: string | null
  readonly values: readonly Setting[]
}

/** Response of POST /config/plan. */
interface Plan {
  readonly applied: readonly string[]
  readonly needs_restart: readonly string[]
  readonly effects: readonly string[]
}

export function Configuration() {
  const mayWrite = useMayWrite()
  const configuration = useData<Configuration>('/config')
  return (
    <>
      <PageHead title="Configuration" />
      {mayWrite && <Difference configuration={configuration} />}
      <Loaded data={configuration}>{({ file, values }) => <Settings file={file} values={values} />}</Loaded>
    </>
  )
}

function Settings({ file, values }: Configuration) {
  const { q = '', source = '' } = useRoute().params
  const sources = [...new Set(values.map((value) => value.source))]
  const matching = values.filter(
    (value) =>
      value.path.toLowerCase().includes(q.toLowerCase()) && (source === '' || value.source === source),
  )
  return (
    <>
      <p class="note">{file === null ? 'Started without a file.' : `File: ${file}`} Secrets are masked.</p>
      <div class="filters">
        <Field label="Setting" type="search" value={q} onChange={(text) => setParams({ q: text })} />
        <Select
          label="Source"
          value={source}
          options={[['', 'all'], ...sources.map((name) => [name, name] as const)]}
          onChange={(value) => setParams({ source: value })}
        />
      </div>
      {matching.length === 0 ? (
        <Empty title="No setting matches the filter" />
      ) : (
        <PagedTable
          label="Settings"
          what="settings"
          pageSize={100}
          columns={columns}
          rows={matching}
          keyOf={({ path }) => path}
        />
      )}
    </>
  )
}

const columns: readonly Column<Setting>[] = [
  { name: 'Setting', show: ({ path }) => <code>{path}</code> },
  { name: 'Value', show: ({ value }) => <code>{JSON.stringify(value)}</code> },
  {
    name: 'Source',
    show: ({ source }) => <Badge tone={source === 'default' ? 'idle' : 'good'}>{source}</Badge>,
  },
]

/** What a reload of the file would change, and the reload. */
function Difference({ configuration }: { configuration: Data<Configuration> }) {
  const [plan, setPlan] = useState<Plan | Error | null>(null)
  const compare = async () => {
    setPlan(await call<Plan>('POST', '/config/plan', { text: null }).catch((error: Error) => error))
  }
  const apply = async () => {
    await call('POST', '/config/apply')
    await Promise.all([compare(), configuration.reload()])
  }
  const hasChanges = plan !== null && !(plan instanceof Error) && plan.applied.length > 0
  return (
    <Panel
      title="Difference to the file"
      actions={
        <>
          <button type="button" onClick={compare}>
            Compare with the file
          </button>
          {hasChanges && (
            <Confirm label="Apply" title="Apply the file?" action={apply}>
              The gateway reloads its configuration. Requests are not interrupted.
            </Confirm>
          )}
        </>
      }
    >
      {plan === null && <p class="note">The file may have changed since the start or the last reload.</p>}
      {plan instanceof Error && <Failure error={plan} />}
      {plan !== null && !(plan instanceof Error) && <Changes plan={plan} />}
    </Panel>
  )
}

function Changes({ plan: { applied, needs_restart, effects } }: { plan: Plan }) {
  if (applied.length + needs_restart.length === 0)
    return <p>The gateway runs with the content of the file.</p>
  const list = (title: string, paths: readonly string[]) =>
    paths.length > 0 && (
      <div>
        <h3>{title}</h3>
        <ul class="plain">
          {paths.map((path) => (
            <li key={path}>
              <code>{path}</code>
            </li>
          ))}
        </ul>
      </div>
    )
  return (
    <>
      {list('A reload would apply', applied)}
      {list('Needs a restart', needs_restart)}
      {list('Effects', effects)}
    </>
  )
}
