/** Commands of the routes to control, which alone talks to the mesh. */
import { defineCommand, type GlobalRate } from '#kernel'
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
