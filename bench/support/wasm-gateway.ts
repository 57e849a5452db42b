/** A gateway with modules in it, registered as an operator would; and proof afterwards that they ran. */
import { callGateway, type GatewaySubject, startGateway } from './gateway.ts'
import type { GuestName, Guests } from './guests.ts'

export interface ModuleUse {
  readonly guest: GuestName
  readonly point: 'OnRequest' | 'OnStreamEvent'
  readonly instance: 'reuse' | 'fresh'
  readonly timeoutMs?: number
  readonly placement?: 'pool' | 'inline' | 'auto'
}

export interface WasmGateway extends GatewaySubject {
  /** Calls of all modules so far, as the gateway counts them. */
  calls(): Promise<{ readonly succeeded: number; readonly failed: number }>
}

export interface WasmGatewayOptions {
  readonly workerPort: number
  readonly guests: Guests
  /** In the order they run. */
  readonly modules: readonly ModuleUse[]
  readonly poolThreads?: number
  /** How long a module is suspended that keeps failing, milliseconds. */
  readonly coolOffMs?: number
}

/** The same gateway without the plugin. */
export function startBareGateway(workerPort: number): Promise<GatewaySubject> {
  return startGateway({ workerPorts: [workerPort] })
}

/** @throws when a module is refused */
export async function startWasmGateway(options: WasmGatewayOptions): Promise<WasmGateway> {
  const { workerPort, guests, modules, poolThreads = 1, coolOffMs = 30_000 } = options
  const plugins = { wasm: { roots: [guests.directory], poolThreads, breaker: { coolOffMs } } }
  const gateway = await startGateway({ workerPorts: [workerPort], plugins })
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
  const reply = await callGateway(port, 'POST', '/wasm', { modules: [descriptor] })
  const text = await reply.text()
  const result = reply.ok ? JSON.parse(text).modules[0].add_result : null
  if (result?.Success === undefined)
    throw new Error(`module ${use.guest} was refused (${reply.status}): ${text}`)
}
