/** Loads a module without a gateway, by the code that registers modules: same checks, limits and trial start. */
import { defineValidator } from '#kernel'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import { type WasmConfig, wasmConfig } from '../config.ts'
import { type LoadParts, loadModule } from '../registry/load-module.ts'
import type { TaskEnd } from '../threads/guest-pool.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { inspectModule } from './inspect.ts'
import { RunnerWorker } from './runner-worker.ts'

/** Settings of a registration that decide whether the gateway accepts a module and how it runs. */
export interface TrialSettings {
  readonly bytes: Uint8Array
  /** Attach points of the registration. Default: those whose export the module has. */
  readonly attachPoints?: readonly AttachPoint[]
  /** Settings of the module. Without any, those that the module declares are not checked. */
  readonly config?: Readonly<Record<string, string>>
  /** Limits of a gateway, see `withDefaultLimits`. */
  readonly limits?: Partial<WasmConfig>
  /** Overrides the instance kind of the module's description. */
  readonly instance?: LoadedModule['instance']
  /** Registered with `wasi: true`. Default false. */
  readonly usesWasi?: boolean
}

const NAME = 'module'
const DEFAULT_TIMEOUT_MS = 5_000

/**
 * Completes the limits by the defaults of the gateway, with 5 s per call for busy machines, and with WASI for modules that
 * are registered with it.
 */
export function withDefaultLimits(limits: Partial<WasmConfig> = {}): WasmConfig {
  const defaults = {
    ...defineValidator(wasmConfig).parse({}),
    timeoutMs: DEFAULT_TIMEOUT_MS,
    allowWasi: true,
  }
  return { ...defaults, ...limits }
}

/** A module as the gateway would run it. */
export interface TrialModule {
  readonly module: LoadedModule
  /** Output of `describe`, empty if it has none; null without `describe`. */
  readonly json: string | null
}

/** @throws ModuleRejected with the reason for which the gateway would reject the registration */
export async function loadTrial(settings: TrialSettings): Promise<TrialModule> {
  const { config = {}, instance, usesWasi } = settings
  const bytes = Uint8Array.from(settings.bytes)
  const limits = withDefaultLimits(settings.limits)
  const attachPoints = settings.attachPoints ?? inspectModule(bytes).attachPoints
  const descriptor = {
    name: NAME,
    file_path: '',
    module_type: 'Middleware' as const,
    attach_points: attachPoints.map((Middleware) => ({ Middleware })),
    config,
    instance,
    wasi: usesWasi,
  }
  const file = { isConfigured: true, bytes, hash: '' }
  let json: string | null = null
  const parts: LoadParts = {
    hasNoSettings: Object.keys(config).length === 0,
    // Origins are not checked: they are a matter of the registration.
    http: { problemOf: () => null },
    pool: {
      run: async ({ draft, modules, limitMs }) => {
        const { task } = draft()
        const hasDescribe = task.kind === 'describe' && task.hasDescribe
        const end = await startOnce(modules[0], hasDescribe, limitMs(0))
        if (hasDescribe && end.kind === 'result' && end.result.kind === 'describe')
          json = end.result.json ?? ''
        return end
      },
    },
  }
  const loaded = await loadModule(NAME, descriptor, file, limits, parts)
  return { module: { ...loaded, row: 0 }, json }
}

/** Starts the module on a thread of its own, and reads its description. */
async function startOnce(module: LoadedModule, hasDescribe: boolean, limitMs: number): Promise<TaskEnd> {
  const state = new SharedArrayBuffer(withDefaultLimits().stateBytes)
  const thread = await RunnerWorker.start({ module, state, seed: NAME, reuseCalls: 1 })
  try {
    const started = await thread.describe(hasDescribe, limitMs)
    if (started === null) return { kind: 'timeout', progress: 1 }
    return { kind: 'result', result: { kind: 'describe', ...started } }
  } catch {
    return { kind: 'crashed', progress: 1 }
  } finally {
    await thread.stop()
  }
}
