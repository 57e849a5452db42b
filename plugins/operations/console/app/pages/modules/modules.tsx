/** Middleware modules: versions, calls, canaries. */
import { count, milliseconds, short } from '../../data/format.ts'
import { setParams, useRoute } from '../../data/route.ts'
import { useMayWrite } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Badge, Empty, Loaded, PageHead, Panel } from '../../parts/basics.tsx'
import { type Column, PagedTable } from '../../parts/table.tsx'
import { useModuleRates } from './history.ts'
import { ModuleDetails } from './module-details.tsx'
import { RegisterModule } from './new-version.tsx'
import type { Module, ModuleList } from './wire.ts'

const REFRESH_MS = 2_000

export function Modules() {
  const { module: selected = null } = useRoute().params
  const mayWrite = useMayWrite()
  const list = useData<ModuleList>('/wasm?detail=full', REFRESH_MS)
  const ratesOf = useModuleRates(list.value)
  return (
    <>
      <PageHead title="Modules">{mayWrite && <RegisterModule reload={list.reload} />}</PageHead>
      <Loaded data={list}>
        {({ modules, not_loaded }) => {
          const current = modules.filter(({ module_state }) => module_state.trial === null)
          const canaryOf = ({ module_uuid }: Module) =>
            modules.find(({ module_state }) => module_state.trial_of === module_uuid)
          const shown = current.find(({ module_meta }) => module_meta.name === selected)
          return (
            <>
              {current.length === 0 ? (
                <Empty title="No modules">
                  Modules in WebAssembly change requests and responses. Write one with{' '}
                  <code>weir wasm new</code>.
                </Empty>
              ) : (
                <PagedTable
                  label="Modules"
                  what="modules"
                  pageSize={50}
                  columns={columnsOf(canaryOf)}
                  rows={current}
                  keyOf={({ module_meta }) => module_meta.name}
                  selected={selected}
                  onSelect={(name) => setParams({ module: name === selected ? '' : name })}
                />
              )}
              {shown !== undefined && (
                <ModuleDetails
                  key={selected}
                  module={shown}
                  canary={canaryOf(shown)}
                  ratesOf={ratesOf}
                  reload={list.reload}
                />
              )}
              {(not_loaded?.length ?? 0) > 0 && (
                <Panel title="Not loaded">
                  <ul class="plain">
                    {not_loaded?.map(({ module_uuid, name, reason }) => (
                      <li key={module_uuid}>
                        {name ?? module_uuid}: {reason}
                      </li>
                    ))}
                  </ul>
                </Panel>
              )}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

function columnsOf(canaryOf: (module: Module) => Module | undefined): readonly Column<Module>[] {
  const perCall = (value: number, { module_meta }: Module) =>
    module_meta.access_count === 0 ? null : value / module_meta.access_count
  return [
    { name: 'Module', show: ({ module_meta }) => module_meta.name },
    {
      name: 'State',
      show: (module) => {
        const { suspended_until } = module.module_state
        if (suspended_until !== null) return <Badge tone="bad">suspended</Badge>
        return canaryOf(module) === undefined ? (
          <Badge tone="good">active</Badge>
        ) : (
          <Badge tone="warn">canary</Badge>
        )
      },
    },
    {
      name: 'Attach points',
      show: ({ module_meta }) => module_meta.attach_points.map(({ Middleware }) => Middleware).join(', '),
    },
    { name: 'Calls', isNumber: true, show: ({ module_meta }) => count(module_meta.access_count) },
    { name: 'Failures', isNumber: true, show: ({ module_state }) => count(module_state.failed_executions) },
    {
      name: 'Time per call',
      isNumber: true,
      show: (module) => milliseconds(perCall(module.module_state.cpu_ms, module)),
    },
    {
      name: 'Fuel per call',
      isNumber: true,
      show: (module) => short(perCall(module.module_state.fuel_total, module)),
    },
    { name: 'Versions', isNumber: true, show: ({ module_state }) => 1 + module_state.versions.length },
  ]
}
