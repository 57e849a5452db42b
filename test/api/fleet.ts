/** A gateway in front of scripted workers, all of them registered and ready; closed together. */
import { onTestFinished } from 'vitest'
import { startGateway, type TestGateway, type TestGatewayOptions } from '../support/gateway.ts'
import {
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

export interface FleetOptions extends TestGatewayOptions {
  /** One scripted worker each; `spec` is added to its registration. */
  readonly workers?: readonly (ScriptedWorkerOptions & { readonly spec?: Record<string, unknown> })[]
  /** Settings of the plugin beside its workers. */
  readonly workersSection?: Record<string, unknown>
}

export interface Fleet {
  readonly gateway: TestGateway
  readonly workers: readonly ScriptedWorker[]
  get(path: string, headers?: Record<string, string>): Promise<Response>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

/** Ended after the test by itself. */
export async function openFleet(options: FleetOptions = {}): Promise<Fleet> {
  const given = options.workers ?? [{}]
  const workers = await Promise.all(given.map((worker) => startScriptedWorker(worker)))
  const specs = workers.map((worker, index) => ({
    url: worker.url,
    models: (given[index].models ?? ['test-model']).map((id) => ({ id })),
    runtime_type: 'sglang',
    ...given[index].spec,
  }))
  const plugins = {
    auth: {},
    health: {},
    openapi: {},
    pairs: {},
    policies: {},
    chat: {},
    ...options.plugins,
    // No probes: tests look at every request that a worker gets.
    workers: { workers: specs, health: { disable_health_check: true }, ...options.workersSection },
  }
  const gateway = await startGateway({ ...options, plugins })
  onTestFinished(async () => {
    await gateway.stop()
    for (const worker of workers) await worker.close()
  })
  await allReady(gateway.url, workers.length)
  for (const worker of workers) worker.requests.length = 0
  return {
    gateway,
    workers,
    get: (path, headers) => fetch(gateway.url + path, { headers }),
    post: (path, body, headers) =>
      fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' || Buffer.isBuffer(body) ? (body as string) : JSON.stringify(body),
      }),
  }
}

async function allReady(url: string, count: number): Promise<void> {
  const deadline = performance.now() + 30_000
  while (count > 0) {
    const readiness = (await (await fetch(`${url}/readiness`)).json()) as { healthy_workers?: number }
    if (readiness.healthy_workers === count) return
    if (performance.now() > deadline) throw new Error(`not ready: ${JSON.stringify(readiness)}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
