/** Registers many workers with a gateway over its API. */
import { callGateway, type GatewayFeatures, type GatewaySubject, startGateway } from './gateway.ts'
import { waitUntil } from './process.ts'

/** Registrations under way at one time. */
const WINDOW = 16
const READY_LIMIT_MS = 120_000

export interface FleetGateway extends GatewaySubject {
  /** From the first registration until the gateway lists all as ready. */
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
    await waitUntil('every worker is ready', READY_LIMIT_MS, () => areReady(gateway.port, ports.length))
    return { ...gateway, registrationMs: performance.now() - startedAtMs }
  } catch (error) {
    await gateway.stop()
    throw error
  }
}

async function register(gatewayPort: number, port: number, health: object): Promise<void> {
  const url = `http://127.0.0.1:${port}`
  const spec = { url, runtime_type: 'sglang', models: [{ id: 'bench' }], health }
  const reply = await callGateway(gatewayPort, 'POST', '/workers', spec)
  if (reply.status !== 202) throw new Error(`POST /workers answered ${reply.status}: ${await reply.text()}`)
  await reply.arrayBuffer()
}

async function areReady(gatewayPort: number, count: number): Promise<boolean> {
  const reply = await callGateway(gatewayPort, 'GET', '/workers')
  const { workers } = (await reply.json()) as { workers: { status: string }[] }
  return workers.filter(({ status }) => status === 'ready').length === count
}
