/** Starts a gateway with modules that are registered through its API. */
import { callGateway, configurationsOf, type GatewaySubject, startGateway } from './gateway.ts'
import type { GuestName, Guests } from './guests.ts'

export interface ModuleUse {
  readonly guest: GuestName
  readonly point: 'OnRequest' | 'OnStreamEvent' | 'OnText' | 'OnPromptText'
  readonly instance: 'reuse' | 'fresh'
  readonly timeoutMs?: number
  readonly placement?: 'pool' | 'inline' | 'auto'
}

export interface WasmGateway extends GatewaySubject {
  /** Calls of all modules so far, from the gateway's counters. */
  calls(): Promise<{ readonly succeeded: number; readonly failed: number }>
}

export interface WasmGatewayOptions {
  readonly workerPort: number
  readonly guests: Guests
  /** In execution order. */
  readonly modules: readonly ModuleUse[]
  readonly poolThreads?: number
  /** Suspension of a module after repeated failures, in milliseconds. */
  readonly coolOffMs?: number
  /** Root of another checkout; null for this one. */
  readonly root?: string | null
}

/** The same gateway without the plugin. */
export function startBareGateway(workerPort: number): Promise<GatewaySubject> {
  return startGateway({ workerPorts: [workerPort] })
}

/** @throws if a module is rejected */
export async function startWasmGateway(options: WasmGatewayOptions): Promise<WasmGateway> {
  const { workerPort, guests, modules, poolThreads = 1, coolOffMs = 30_000, root = null } = options
  const { wasmModules } = await configurationsOf(root)
  const features = wasmModules(guests.directory, poolThreads, coolOffMs)
  const gateway = await startGateway({ root, workerPorts: [workerPort], ...features })
  try {
    for (const [index, use] of modules.entries()) await register(gateway.port, guests, use, index)
  } catch (error) {
    await gateway.stop()
    throw error
  }
  return {
    ...gateway,
    async calls() {
      const { metrics } = JSON.parse(await (await callGateway(gateway.port, 'GET', '/wasm')).text())
      return { succeeded: metrics.successful_executions, failed: metrics.failed_executions }
    },
  }
}

async function register(port: number, guests: Guests, use: ModuleUse, index: number): Promise<void> {
  const descriptor = {
    name: `${use.guest}-${index}`,
    file_path: guests.file(use.guest, use.instance === 'fresh', index),
    module_type: 'Middleware',
    attach_points: [{ Middleware: use.point }],
    instance: use.instance,
    timeout_ms: use.timeoutMs,
    placement: use.placement,
  }
  const response = await callGateway(port, 'POST', '/wasm', { modules: [descriptor] })
  const text = await response.text()
  const result = response.ok ? JSON.parse(text).modules[0].add_result : null
  if (result?.Success === undefined)
    throw new Error(`module ${use.guest} was rejected (${response.status}): ${text}`)
}
