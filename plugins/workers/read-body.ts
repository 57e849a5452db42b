/** Reads the bodies of POST, PUT and PATCH: checks them against their schemas and gives our own form. On control only. */
import { defineValidator } from '#kernel'
import { toWorkerPatch, toWorkerSpec, type WorkerPatch, type WorkerSpec } from './spec.ts'
import { WorkerPatchSchema, type WorkerPatchWire, WorkerSpecSchema, type WorkerSpecWire } from './wire.ts'

const specValidator = defineValidator(WorkerSpecSchema)
const patchValidator = defineValidator(WorkerPatchSchema)

/** @throws invalid_field, duplicate_field (400) */
export function readSpec(body: unknown): WorkerSpec {
  return toWorkerSpec(specValidator.parse(body) as WorkerSpecWire)
}

/** @throws invalid_field (400) */
export function readPatch(body: unknown): WorkerPatch {
  return toWorkerPatch(patchValidator.parse(body) as WorkerPatchWire)
}

/** Compiles the checks, which takes a while, before somebody has to wait for it. */
export function prepareBodyChecks(): void {
  specValidator.problem({})
  patchValidator.problem({})
}
