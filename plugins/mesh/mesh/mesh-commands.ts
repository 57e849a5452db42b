/** Commands of the routes to control, which alone talks to the mesh. */
import { defineCommand, type GlobalRate, type Host } from '#kernel'
import type { SharedMesh } from './mesh-service.ts'
import { CONFIG_KEYS, showPolicies, showStatus, showWorkers } from './mesh-view.ts'
import type { PolicyStateWire, StatusWire, WorkerStateWire } from './wire.ts'

export interface MeshHealth {
  readonly name: string
  readonly size: number
  readonly problem: string | null
}

export const ReadStatus = defineCommand<null, StatusWire>('mesh.status')
export const ReadHealth = defineCommand<null, MeshHealth>('mesh.health')
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

/** Registers the handlers on control. @param leave leaves the mesh and ends this gateway */
export function handleMeshCommands(
  host: Host,
  mesh: SharedMesh,
  engineKind: string,
  leave: () => void,
): void {
  const { balance } = host
  const keys = mesh.records<string>(CONFIG_KEYS)
  host.onCommand(ReadStatus, () => showStatus(mesh, engineKind, balance))
  host.onCommand(ReadHealth, () => ({
    name: mesh.name,
    size: mesh.members.filter(({ status }) => status !== 'Down').length,
    problem: mesh.problem(),
  }))
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
}
