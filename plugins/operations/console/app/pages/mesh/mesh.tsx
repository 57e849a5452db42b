/** The gateways of the mesh, and whether they agree. */
import { count } from '../../data/format.ts'
import { useData } from '../../data/use-data.ts'
import { Badge, Figure, Loaded, PageHead, Panel, type Tone } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'

const REFRESH_MS = 2_000

interface Member {
  readonly name: string
  readonly address: string
  readonly status: 'Init' | 'Alive' | 'Suspected' | 'Down' | 'Leaving'
  readonly version: number
  readonly software: string
  readonly in_flight: number
  /** Short hash of each section of its configuration. */
  readonly config: Readonly<Record<string, string>>
}

/** Response of GET /ha/status. */
interface MeshStatus {
  readonly node_name: string
  readonly node_count: number
  readonly nodes: readonly Member[]
  readonly stores: { readonly worker_count: number; readonly app_count: number }
  readonly engine: { readonly kind: string; readonly state: string; readonly revision: number }
  readonly config_differences: readonly string[]
}

/** Response of GET /ha/health. */
interface MeshHealth {
  readonly status: 'healthy' | 'degraded'
  readonly problem: string | null
}

export function Mesh() {
  const status = useData<MeshStatus>('/ha/status', REFRESH_MS)
  const health = useData<MeshHealth>('/ha/health', REFRESH_MS)
  return (
    <>
      <PageHead title="Mesh" />
      {health.value?.problem != null && (
        <p class="notice" role="status">
          {health.value.problem}
        </p>
      )}
      <Loaded data={status}>
        {({ node_name, nodes, stores, engine, config_differences }) => (
          <>
            <dl class="figures">
              <Figure
                label="Gateways alive"
                value={`${nodes.filter((node) => node.status === 'Alive').length} of ${nodes.length}`}
              />
              <Figure
                label="Engine"
                value={engine.state}
                note={`${engine.kind}, revision ${count(engine.revision)}`}
                tone={engine.state === 'connected' ? undefined : 'bad'}
              />
              <Figure label="Shared workers" value={count(stores.worker_count)} />
              <Figure label="Shared values" value={count(stores.app_count)} />
            </dl>
            <Panel title="Gateways">
              <Table
                label="Gateways of the mesh"
                columns={columnsOf(nodes, config_differences)}
                rows={nodes}
                keyOf={({ name }) => name}
                selected={node_name}
              />
            </Panel>
            <Panel title="Agreement">
              {config_differences.length === 0 ? (
                <p>All living gateways have the same configuration.</p>
              ) : (
                <p class="notice">
                  These sections differ between living gateways: {config_differences.join(', ')}. The table
                  shows a short hash of each.
                </p>
              )}
            </Panel>
          </>
        )}
      </Loaded>
    </>
  )
}

const TONES: Readonly<Record<string, Tone>> = {
  Alive: 'good',
  Suspected: 'warn',
  Leaving: 'warn',
  Down: 'bad',
}

function columnsOf(nodes: readonly Member[], differences: readonly string[]): readonly Column<Member>[] {
  const versions = new Set(nodes.map(({ software }) => software))
  return [
    { name: 'Gateway', show: ({ name }) => name },
    { name: 'Address', show: ({ address }) => address },
    { name: 'State', show: ({ status }) => <Badge tone={TONES[status] ?? 'idle'}>{status}</Badge> },
    {
      name: 'Version',
      show: ({ software }) => (versions.size > 1 ? <Badge tone="warn">{software}</Badge> : software),
    },
    {
      name: 'Joined',
      isNumber: true,
      show: ({ version }) => (version === 1 ? 'once' : `${count(version)} times`),
    },
    { name: 'In flight', isNumber: true, show: ({ in_flight }) => count(in_flight) },
    ...differences.map((section) => ({
      name: section,
      show: ({ config }: Member) => <code>{config[section] ?? 'absent'}</code>,
    })),
  ]
}
