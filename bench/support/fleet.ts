/** Starts a gateway and registers many workers through its API. */
import { callGateway, type GatewaySubject, readyWorkers, startGateway } from './gateway.ts'
import type { GatewayFeatures } from './gateway-config.ts'
import { wait, waitUntil } from './process.ts'

/** Concurrent registrations. */
const WINDOW = 16
const RETRY_MS = 100
const READY_LIMIT_MS = 120_000

export interface FleetGateway extends GatewaySubject {
  /** Time from the first registration until every worker is ready. */
  readonly registrationMs: number
}

/** @param health member `health` of each worker */
export async function startFleetGateway(
  ports: readonly number[],
  health: object,
  options: GatewayFeatures = {},
): Promise<FleetGateway> {
  const gateway = await startGateway({ ...options, workerPorts: [] })
  try {
    const startedAtMs = performance.now()
    const left = [...ports]
    const registerSome = async () => {
      for (let port = left.pop(); port !== undefined; port = left.pop()) {
        await register(gateway.port, port, health)
      }
    }
    await Promise.all(Array.from({ length: WINDOW }, registerSome))
    await waitUntil('every worker is ready', READY_LIMIT_MS, async () => {
      return (await readyWorkers(gateway.port)) === ports.length
    })
    return { ...gateway, registrationMs: performance.now() - startedAtMs }
  } catch (error) {
    await gateway.stop()
    throw error
  }
}

async function register(gatewayPort: number, port: number, health: object): Promise<void> {
  const url = `http://127.0.0.1:${port}`
  const spec = { url, runtime_type: 'sglang', models: [{ id: 'bench' }], health }
  let response = await callGateway(gatewayPort, 'POST', '/workers', spec)
  // The queue of changes is full: discovery is slower than registration.
  while (response.status === 503) {
    await response.arrayBuffer()
    await wait(RETRY_MS)
    response = await callGateway(gatewayPort, 'POST', '/workers', spec)
  }
  const text = await response.text()
  if (response.status !== 202) throw new Error(`POST /workers returned ${response.status}: ${text}`)
}
