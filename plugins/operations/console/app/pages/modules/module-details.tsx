/** One module: its versions, its calls, and a canary beside the current version. */
import { call } from '../../data/api.ts'
import { bytes, count, dateTime, milliseconds, percent, perSecond, short } from '../../data/format.ts'
import { useMayWrite } from '../../data/session.ts'
import { Panel } from '../../parts/basics.tsx'
import { Chart } from '../../parts/chart.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { Rates } from './history.ts'
import { ModuleLogLines } from './module-log.tsx'
import { NewVersion } from './new-version.tsx'
import type { Module } from './wire.ts'

interface DetailsProps {
  readonly module: Module
  /** Its version on trial. */
  readonly canary: Module | undefined
  readonly ratesOf: (module: Module) => Rates
  readonly reload: () => Promise<void>
}

export function ModuleDetails({ module, canary, ratesOf, reload }: DetailsProps) {
  const mayWrite = useMayWrite()
  const { name } = module.module_meta
  const act = (method: string, path: string) => async () => {
    await call(method, `/wasm/${path}`)
    await reload()
  }
  return (
    <Panel
      title={name}
      actions={
        mayWrite && (
          <>
            {canary === undefined && <NewVersion module={module} reload={reload} />}
            {canary !== undefined && (
              <Confirm
                label="Promote the canary"
                title="Promote the canary?"
                action={act('POST', `${canary.module_uuid}/promote`)}
              >
                The version on trial serves all requests of {name}; the current one stays available for
                rollback.
              </Confirm>
            )}
            {(canary !== undefined || module.module_state.versions.length > 0) && (
              <Confirm
                label={canary === undefined ? 'Roll back' : 'End the canary'}
                title={canary === undefined ? 'Return to the earlier version?' : 'End the canary?'}
                action={act('POST', `${(canary ?? module).module_uuid}/rollback`)}
              >
                {canary === undefined
                  ? `${name} returns to its earlier version; calls in progress finish.`
                  : `The current version of ${name} serves all requests again.`}
              </Confirm>
            )}
            <Confirm
              label="Remove"
              title="Remove the module?"
              isDanger
              action={act('DELETE', module.module_uuid)}
            >
              Requests pass without {name}; calls in progress finish.
            </Confirm>
          </>
        )
      }
    >
      <Curves module={module} canary={canary} ratesOf={ratesOf} />
      <Figures module={module} canary={canary} />
      <h3>Versions</h3>
      <Table
        label="Versions"
        columns={versionColumns}
        rows={versionsOf(module, canary)}
        keyOf={({ uuid }) => uuid}
        selected={module.module_uuid}
      />
      {canary !== undefined && <ModuleLogLines uuid={canary.module_uuid} title="Log of the canary" />}
      <ModuleLogLines
        uuid={module.module_uuid}
        title={canary === undefined ? 'Log' : 'Log of the current version'}
      />
    </Panel>
  )
}

function Curves({ module, canary, ratesOf }: Pick<DetailsProps, 'module' | 'canary' | 'ratesOf'>) {
  const current = ratesOf(module)
  const trial = canary === undefined ? null : ratesOf(canary)
  const lines = (pick: (rates: Rates) => readonly (number | null)[]) => [
    { label: 'current', values: pick(current) },
    ...(trial === null ? [] : [{ label: 'canary', values: pick(trial) }]),
  ]
  return (
    <div class="charts">
      <Chart
        title="Calls"
        times={current.times}
        print={perSecond}
        series={lines((rates) => rates.callsPerSecond)}
      />
      <Chart
        title="Time per call"
        times={current.times}
        print={milliseconds}
        series={lines((rates) => rates.meanMs)}
      />
      <Chart
        title="Failed calls"
        times={current.times}
        print={percent}
        series={lines((rates) => rates.failureShare)}
      />
    </div>
  )
}

function Figures({ module, canary }: Pick<DetailsProps, 'module' | 'canary'>) {
  const rows = (canary === undefined ? [module] : [module, canary]).map(({ module_meta, module_state }) => ({
    version: module_state.trial === null ? 'current' : 'canary',
    calls: module_meta.access_count,
    ...module_state,
  }))
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { name: 'Version', show: ({ version }) => version },
    { name: 'Calls', isNumber: true, show: ({ calls }) => count(calls) },
    { name: 'Failures', isNumber: true, show: ({ failed_executions }) => count(failed_executions) },
    {
      name: 'Time per call',
      isNumber: true,
      show: ({ cpu_ms, calls }) => milliseconds(calls === 0 ? null : cpu_ms / calls),
    },
    {
      name: 'Fuel per call',
      isNumber: true,
      show: ({ fuel_total, calls }) => short(calls === 0 ? null : fuel_total / calls),
    },
    { name: 'Most fuel of a call', isNumber: true, show: ({ fuel_max }) => short(fuel_max) },
    { name: 'Placement', show: ({ placement, instance }) => `${placement}, ${instance} instances` },
    { name: 'On failure', show: ({ on_failure }) => on_failure },
  ]
  return <Table label="Calls by version" columns={columns} rows={rows} keyOf={({ version }) => version} />
}

interface Version {
  readonly uuid: string
  readonly state: string
  readonly path: string
  readonly hash: string
  readonly size: number
  readonly createdAt: string
}

function versionsOf(module: Module, canary: Module | undefined): Version[] {
  const known = (canary === undefined ? [module] : [canary, module]).map(({ module_uuid, module_meta }) => ({
    module_uuid,
    ...module_meta,
  }))
  return [...known, ...module.module_state.versions].map((version) => ({
    uuid: version.module_uuid,
    state:
      version.module_uuid === canary?.module_uuid
        ? 'on trial'
        : version.module_uuid === module.module_uuid
          ? 'current'
          : 'earlier',
    path: version.file_path,
    hash: version.sha256_hash,
    size: version.size_bytes,
    createdAt: version.created_at,
  }))
}

const versionColumns: readonly Column<Version>[] = [
  { name: 'State', show: ({ state }) => state },
  { name: 'File', show: ({ path }) => path },
  { name: 'SHA-256', show: ({ hash }) => <code title={hash}>{hash.slice(0, 12)}</code> },
  { name: 'Size', isNumber: true, show: ({ size }) => bytes(size) },
  { name: 'Registered', show: ({ createdAt }) => dateTime(createdAt) },
]
