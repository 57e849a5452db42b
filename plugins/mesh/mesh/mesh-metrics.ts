/** Metrics of the mesh, set from its state before each scrape. Control only. */
import type { Host, MeshEngine, MeshStatus } from '#kernel'
import { configDifferences } from './membership.ts'
import type { SharedMesh } from './mesh-service.ts'

const STATUSES: readonly MeshStatus[] = ['Init', 'Alive', 'Suspected', 'Down', 'Leaving']

export function declareMeshMetrics({ metrics }: Host, mesh: SharedMesh, engine: MeshEngine): void {
  const gauge = (name: string, help: string) => metrics.gauge({ name, help }).labels()
  const counter = (name: string, help: string) => metrics.counter({ name, help }).labels()
  const nodes = metrics.gauge({
    name: 'weir_mesh_nodes',
    help: 'Gateways of the mesh that this gateway lists, by status.',
    labels: ['status'],
  })
  const up = gauge('weir_mesh_engine_up', '1 while the mesh engine answers, otherwise 0.')
  const diverged = gauge(
    'weir_mesh_diverged',
    '1 while the mesh engine lacks data that this gateway has, until `weir mesh restore`.',
  )
  const revision = gauge('weir_mesh_revision', 'Last change of the mesh that this gateway has applied.')
  const lag = gauge('weir_mesh_lag_changes', 'Changes of the mesh that this gateway has not applied yet.')
  const differences = gauge(
    'weir_mesh_config_differences',
    'Sections whose configuration is not the same on every living gateway.',
  )
  const commands = counter('weir_mesh_commands_total', 'Commands to the mesh engine.')
  const seconds = counter('weir_mesh_command_seconds_total', 'Time of the commands to the mesh engine.')
  const errors = counter('weir_mesh_command_errors_total', 'Commands to the mesh engine that failed.')
  const conflicts = counter(
    'weir_mesh_conflicts_total',
    'Changes that were applied anew, because another gateway changed the record first.',
  )
  const degraded = counter('weir_mesh_degraded_seconds_total', 'Time without the mesh engine.')
  const messages = metrics.counter({
    name: 'weir_mesh_messages_total',
    help: 'Messages between gateways: sent, received, and dropped before they were sent.',
    labels: ['result'],
  })
  metrics.onCollect(() => {
    for (const status of STATUSES)
      nodes.labels(status).value = mesh.members.filter((member) => member.status === status).length
    up.value = mesh.membership.problem === null ? 1 : 0
    diverged.value = mesh.data.isDiverged ? 1 : 0
    revision.value = mesh.data.revision
    lag.value = mesh.data.lag
    differences.value = configDifferences(mesh.members).length
    commands.value = engine.commands.count
    seconds.value = engine.commands.seconds
    errors.value = engine.commands.errors
    conflicts.value = mesh.data.conflicts
    degraded.value = mesh.membership.degradedSeconds
    messages.labels('sent').value = mesh.messages.sent
    messages.labels('received').value = mesh.messages.received
    messages.labels('dropped').value = mesh.messages.dropped
  })
}
