/** Checks worker specifications against their schemas and against the plugins that are enabled. On control only. */
import { defineValidator, type WorkerControl, type WorkerControls } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { workerErrors } from './errors.ts'
import { WorkerPatchSchema, type WorkerPatchWire, WorkerSpecSchema, type WorkerSpecWire } from './wire.ts'
import { toWorkerPatch, toWorkerSpec, type WorkerPatch, type WorkerSpec } from './worker-spec.ts'
import { schemeOf } from './worker-url.ts'

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

/** Built-in plugins by URL scheme and connection mode, for error messages that name the plugin to enable. */
const PLUGIN_OF_SCHEME: ReadonlyMap<string, string> = new Map([
  ['http', 'http-workers'],
  ['https', 'http-workers'],
  ['grpc', 'grpc'],
  ['grpcs', 'grpc'],
])

/** @throws transport_missing */
export function requireControl(controls: WorkerControls, url: string): WorkerControl {
  const control = controls.controlFor(url)
  if (control === null) throw transportMissing(url)
  return control
}

function transportMissing(url: string) {
  const scheme = schemeOf(url)
  return workerErrors.transport_missing.with({ param: 'url' }, scheme, PLUGIN_OF_SCHEME.get(scheme) ?? null)
}

/**
 * Checks that an enabled plugin supports the URL scheme and the engine.
 * @throws invalid_worker_url, invalid_field (400), transport_missing (501) for a scheme that needs another plugin
 */
export function checkSupported(controls: WorkerControls, { url, runtimeType }: WorkerSpec): void {
  const control = controls.controlFor(url)
  if (control === null) {
    if (PLUGIN_OF_SCHEME.has(schemeOf(url))) throw transportMissing(url)
    const known = new Set([
      ...controls.controls().flatMap(({ schemes }) => schemes),
      ...PLUGIN_OF_SCHEME.keys(),
    ])
    const list = [...known].map((one) => `${one}://`).join(', ')
    throw workerErrors.invalid_worker_url.with({ param: 'url' }, `must begin with one of ${list}`)
  }
  const problem = runtimeProblem(control, runtimeType)
  if (problem !== null)
    throw workerErrors.invalid_field.with({ param: 'runtime_type' }, 'runtime_type', problem)
}

function runtimeProblem({ runtimes }: WorkerControl, name: string): string | null {
  if (name === 'unspecified' || runtimes.includes(name)) return null
  return `must be one of ${['unspecified', ...runtimes].join(', ')}`
}

/** @throws invalid_field (400) if the mode is given and no enabled plugin has registered it */
function checkConnectionMode(controls: WorkerControls, mode: string | null | undefined): void {
  const problem = modeProblem(controls, mode)
  if (problem === null) return
  throw workerErrors.invalid_field.with({ param: 'connection_mode' }, 'connection_mode', problem)
}

function modeProblem(controls: WorkerControls, mode: string | null | undefined): string | null {
  if (mode == null || controls.controlOf(mode) !== null) return null
  const registered = controls.controls().map((control) => control.mode)
  const plugin = PLUGIN_OF_SCHEME.get(mode)
  const cure = plugin === undefined ? '' : `; enable plugin ${plugin} for it`
  return `must be one of ${registered.join(', ')} (got ${JSON.stringify(mode)})${cure}`
}

/**
 * Checks the configured workers after all plugins have registered their connection modes.
 * @throws invalid_workers_config, which stops the boot
 */
export function checkConfiguredWorkers(controls: WorkerControls, config: WorkersConfig): void {
  for (const [index, url] of config.urls.entries()) checkConfigured(controls, `urls.${index}`, url)
  for (const [index, { url, runtime, runtime_type, connection_mode }] of config.workers.entries()) {
    const mode = modeProblem(controls, connection_mode)
    if (mode !== null) throw workerErrors.invalid_workers_config(`workers.${index}.connection_mode`, mode)
    const control = checkConfigured(controls, `workers.${index}.url`, url)
    const problem = runtimeProblem(control, runtime_type ?? runtime ?? 'unspecified')
    if (problem !== null) throw workerErrors.invalid_workers_config(`workers.${index}.runtime_type`, problem)
  }
}

function checkConfigured(controls: WorkerControls, path: string, url: string): WorkerControl {
  const control = controls.controlFor(url)
  if (control !== null) return control
  const plugin = PLUGIN_OF_SCHEME.get(schemeOf(url))
  const cure =
    plugin === undefined
      ? 'no enabled plugin supports its scheme'
      : `enable plugin ${plugin}, which supports its scheme`
  throw workerErrors.invalid_workers_config(path, `is ${url}; ${cure}`)
}
