/** Reads the bodies of POST, PUT and PATCH: checks them against their schemas and gives our own form. On control only. */
import type { WorkerControls } from '#kernel'
import { defineValidator } from '#kernel'
import { checkConnectionMode } from './controls.ts'
import { toWorkerPatch, toWorkerSpec, type WorkerPatch, type WorkerSpec } from './spec.ts'
import { WorkerPatchSchema, type WorkerPatchWire, WorkerSpecSchema, type WorkerSpecWire } from './wire.ts'

const specValidator = defineValidator(WorkerSpecSchema)
const patchValidator = defineValidator(WorkerPatchSchema)

/** @throws invalid_field, duplicate_field (400) */
export function readSpec(body: unknown, controls: WorkerControls): WorkerSpec {
  const wire = specValidator.parse(body) as WorkerSpecWire
  checkConnectionMode(controls, wire.connection_mode)
  return toWorkerSpec(wire)
}

/** @throws invalid_field (400) */
export function readPatch(body: unknown, controls: WorkerControls): WorkerPatch {
  const wire = patchValidator.parse(body) as WorkerPatchWire
  checkConnectionMode(controls, wire.connection_mode)
  return toWorkerPatch(wire)
}

/** Compiles the checks, which takes a while, before somebody has to wait for it. */
export function prepareBodyChecks(): void {
  specValidator.problem({})
  patchValidator.problem({})
}
