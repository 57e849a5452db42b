/** What the routes show of the mesh and change in it, as commands to control, which alone talks to the mesh. */
import { defineCommand, type GlobalRate, type Host, type WorkerBalance, type WorkerEntry } from '#kernel'
import { configDifferences } from './membership.ts'
import type { SharedMesh } from './mesh-service.ts'
import type { HealthWire, PolicyStateWire, StatusWire, WorkerStateWire } from './wire.ts'

export const ReadStatus = defineCommand<null, StatusWire>('mesh.status')
export const ReadHealth = defineCommand<null, HealthWire>('mesh.health')
export const ReadWorkers = defineCommand<null, readonly WorkerStateWire[]>('mesh.workers')
export const ReadPolicies = defineCommand<null, readonly PolicyStateWire[]>('mesh.policies')
/** Undefined for an unknown key. */
export const ReadConfigKey = defineCommand<string, string | undefined>('mesh.read-config-key')
/** @throws mesh_unavailable, mesh_diverged (503) */
export const WriteConfigKey = defineCommand<{ key: string; value: string }, void>('mesh.write-config-key')
/** @throws rate_limit_not_enforced (503) */
export const ReadGlobalRate = defineCommand<null, GlobalRate>('mesh.read-global-rate')
/** @throws rate_limit_not_enforced, mesh_unavailable (503) */
export const SetGlobalRate = defineCommand<number, void>('mesh.set-global-rate')
export const LeaveMesh = defineCommand<null, void>('mesh.leave')
/** @returns what was written. @throws mesh_unavailable (503) */
export const RestoreMesh = defineCommand<null, { readonly records: number; readonly blobs: number }>(
  'mesh.restore',
)
/** @throws mesh_unavailable (503) */
export const AcceptEngine = defineCommand<null, void>('mesh.accept-engine')

/** Registers the handlers on control. @param leave leaves the mesh and ends this gateway */
export function handleMeshCommands(
  host: Host,
  mesh: SharedMesh,
  engineKind: string,
  leave: () => void,
): void {
  const { balance } = host
  const keys = mesh.records<string>(CONFIG_KEYS, (value) => typeof value === 'string')
  host.onCommand(ReadStatus, () => showStatus(mesh, engineKind, balance))
  host.onCommand(ReadHealth, () => showHealth(mesh))
  host.onCommand(ReadWorkers, () => showWorkers(balance))
  host.onCommand(ReadPolicies, () => showPolicies(balance))
  host.onCommand(ReadConfigKey, (key) => keys.all.get(key)?.value)
  host.onCommand(WriteConfigKey, async ({ key, value }) => {
    await keys.change(key, () => value)
  })
  host.onCommand(ReadGlobalRate, () => mesh.rateLimiter().read())
  host.onCommand(SetGlobalRate, (perSecond) => mesh.rateLimiter().set(perSecond))
  host.onCommand(LeaveMesh, leave)
  host.onCommand(RestoreMesh, () => mesh.restore())
  host.onCommand(AcceptEngine, () => mesh.data.accept())
}

type Balance = Pick<WorkerBalance, 'workers' | 'status' | 'inFlight' | 'policyOf' | 'inFlightElsewhere'>

const CONFIG_KEYS = 'config-keys'

function showStatus(mesh: SharedMesh, engineKind: string, balance: Balance): StatusWire {
  const { members } = mesh
  const state = mesh.data.isDiverged ? 'diverged' : mesh.problem() === null ? 'connected' : 'degraded'
  return {
    node_name: mesh.name,
    node_count: members.length,
    nodes: members.map(({ name, address, status, incarnation, software, inFlight, config }) => ({
      name,
      address,
      status,
      version: incarnation,
      incarnation,
      software,
      in_flight: inFlight,
      config: { ...config },
    })),
    stores: {
      membership_count: members.length,
      worker_count: balance.workers.length,
      policy_count: showPolicies(balance).length,
      app_count: mesh.data.count(CONFIG_KEYS),
    },
    engine: { kind: engineKind, state, revision: mesh.data.revision },
    config_differences: configDifferences(members),
  }
}

function showHealth(mesh: SharedMesh): HealthWire {
  const problem = mesh.problem()
  return {
    status: problem === null ? 'healthy' : 'degraded',
    node_name: mesh.name,
    cluster_size: mesh.members.filter(({ status }) => status !== 'Down').length,
    stores_healthy: problem === null,
    problem,
  }
}

function showWorkers(balance: Balance): WorkerStateWire[] {
  return balance.workers.map((worker) => showWorker(worker, balance))
}

function showWorker(worker: WorkerEntry, balance: Balance): WorkerStateWire {
  const { id, url, slot, revision, models, workerType, connectionMode, runtimeType, priority, cost, labels } =
    worker
  return {
    worker_id: id,
    model_id: models.at(0)?.id ?? '',
    url,
    health: balance.status(slot) === 'ready',
    load: balance.inFlight(slot) + balance.inFlightElsewhere(slot),
    version: revision,
    spec: {
      worker_type: workerType,
      connection_mode: connectionMode,
      runtime_type: runtimeType,
      models: models.map((model) => model.id),
      priority,
      cost,
      labels: { ...labels },
    },
  }
}

function showPolicies(balance: Balance): PolicyStateWire[] {
  const models = balance.workers.flatMap((worker) => worker.models.map(({ id }) => id))
  const counts = Map.groupBy(models, (id) => id)
  return [...counts].map(([model_id, { length: workers }]) => ({
    model_id,
    policy_type: balance.policyOf(model_id),
    config: { workers },
    version: 1,
  }))
}
