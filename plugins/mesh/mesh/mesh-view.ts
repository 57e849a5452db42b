/** What the routes show of the mesh: its members, and the workers and policies of this gateway. */
import type { WorkerBalance, WorkerEntry } from '#kernel'
import { configDifferences } from './config-differences.ts'
import type { SharedMesh } from './mesh-service.ts'
import type { PolicyStateWire, StatusWire, WorkerStateWire } from './wire.ts'

type Balance = Pick<WorkerBalance, 'workers' | 'status' | 'inFlight' | 'policyOf' | 'inFlightElsewhere'>

export const CONFIG_KEYS = 'config-keys'

export function showStatus(mesh: SharedMesh, engineKind: string, balance: Balance): StatusWire {
  const { members } = mesh
  const state = mesh.isDiverged ? 'diverged' : mesh.problem() === null ? 'connected' : 'degraded'
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
      app_count: mesh.count(CONFIG_KEYS),
    },
    engine: { kind: engineKind, state, revision: mesh.revision },
    config_differences: configDifferences(members),
  }
}

export function showWorkers(balance: Balance): WorkerStateWire[] {
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

export function showPolicies(balance: Balance): PolicyStateWire[] {
  const models = balance.workers.flatMap((worker) => worker.models.map(({ id }) => id))
  const counts = Map.groupBy(models, (id) => id)
  return [...counts].map(([model_id, { length: workers }]) => ({
    model_id,
    policy_type: balance.policyOf(model_id),
    config: { workers },
    version: 1,
  }))
}
