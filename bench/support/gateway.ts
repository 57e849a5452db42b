/** The gateway under test: the built command with a generated configuration, one data thread, keys and metrics on. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, startChild, waitUntil } from './process.ts'
import { BENCH_KEY, type Subject } from './subject.ts'

const COMMAND = fileURLToPath(new URL('../../dist/plugins/cli.js', import.meta.url))

/** The gateway, and how long it took from its start to the first request it said it was ready for. */
export interface GatewaySubject extends Subject {
  readonly bootMs: number
}

function configText(port: number, workerPort: number): string {
  return `kernel:
  host: 127.0.0.1
  port: ${port}
  threads: 1
  log: { level: warn, access: false }
  metrics: { enabled: true, port: 0 }
  shutdown: { graceMs: 0, settleMs: 0 }
plugins:
  auth: { apiKey: ${BENCH_KEY} }
  health: {}
  openapi: {}
  proxy: {}
  workers: { urls: ['http://127.0.0.1:${workerPort}'] }
`
}

/** @throws when the gateway is not built or not ready in time */
export async function startGateway(workerPort: number): Promise<GatewaySubject> {
  if (!existsSync(COMMAND)) throw new Error('dist is missing: run "npm run build" first')
  const directory = mkdtempSync(join(tmpdir(), 'weir-bench-gateway-'))
  const port = await freePort()
  const file = join(directory, 'weir.yaml')
  writeFileSync(file, configText(port, workerPort))
  const startedAtMs = performance.now()
  const child = startChild(process.execPath, [COMMAND, 'serve', '--config', file])
  await waitUntil('the gateway is ready', 15_000, async () => {
    return (await fetch(`http://127.0.0.1:${port}/readiness`)).ok
  }).catch(async (error: Error) => {
    await child.stop()
    throw new Error(`${error.message}\n${child.errors()}`)
  })
  return {
    name: 'gateway',
    port,
    pid: child.pid,
    bootMs: performance.now() - startedAtMs,
    async stop() {
      await child.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
