/** The gateway under test: the built command with a generated configuration. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configurations, type GatewayFeatures } from './gateway-config.ts'
import { type Child, freePort, StopWaiting, startChild, temporaryDirectory, waitUntil } from './process.ts'
import type { RuntimeReports } from './runtime-reports.ts'
import { BENCH_KEY, type Subject } from './subject.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const START_LIMIT_MS = 60_000
/** As the first line of the command says. */
const YOUNG_OBJECTS = '--max-semi-space-size=4'

export interface GatewaySubject extends Subject {
  /** Time from the start of the process to its first 200 of `/readiness`. */
  readonly bootMs: number
}

export interface GatewayOptions extends GatewayFeatures {
  /** Workers of the configuration. */
  readonly workerPorts: readonly number[]
  /** Root of another checkout whose build is started instead; null for this one. */
  readonly root?: string | null
  /** Collects memory and collections of its threads. */
  readonly runtime?: Pick<RuntimeReports, 'nodeOptions' | 'env'>
}

/** Configurations of a checkout; those of this one if it is older than that file. */
export async function configurationsOf(root: string | null): Promise<typeof configurations> {
  const file = join(root ?? ROOT, 'bench/support/gateway-config.ts')
  return existsSync(file) ? (await import(file)).configurations : configurations
}

/** Starts the built `weir` command. @throws if it is not built */
export function startWeir(
  args: readonly string[],
  root: string | null = null,
  { nodeOptions, env }: NonNullable<GatewayOptions['runtime']> = { nodeOptions: [], env: {} },
): Child {
  const command = join(root ?? ROOT, 'dist/plugins/cli.js')
  if (!existsSync(command)) throw new Error(`${command} is missing: run "npm run build" there first`)
  return startChild(process.execPath, [YOUNG_OBJECTS, ...nodeOptions, command, ...args], env)
}

/** Resolves when every worker of the configuration is ready. @throws after 60 s, with the gateway's error output */
export async function startGateway(options: GatewayOptions): Promise<GatewaySubject> {
  const { workerPorts, root = null } = options
  const port = await freePort()
  const { gatewayConfig } = await configurationsOf(root)
  const file = join(temporaryDirectory(), 'weir.json')
  writeFileSync(file, JSON.stringify(gatewayConfig({ port, apiKey: BENCH_KEY, workerPorts }, options)))
  const startedAtMs = performance.now()
  const child = startWeir(['serve', '--config', file], root, options.runtime)
  try {
    // A gateway without workers never becomes ready.
    const path = workerPorts.length === 0 ? '/liveness' : '/readiness'
    await waitUntil('the gateway is ready', START_LIMIT_MS, async () => {
      if (!child.isRunning()) throw new StopWaiting(child.errors())
      return (await fetch(`http://127.0.0.1:${port}${path}`)).ok
    })
    const bootMs = performance.now() - startedAtMs
    await waitUntil('every worker is ready', START_LIMIT_MS, async () => {
      return (await readyWorkers(port)) >= workerPorts.length
    })
    return { name: 'gateway', port, pid: child.pid, bootMs, stop: () => child.stop() }
  } catch (error) {
    await child.stop()
    throw new Error(`${(error as Error).message}\n${child.errors()}`)
  }
}

/** Whether a gateway did not start because its build lacks the configured policy or plugin. */
export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof Error &&
    /kernel\.policy (must be one of|is a policy of)|there is no plugin/.test(error.message)
  )
}

export const ADMIN_HEADERS = { authorization: `Bearer ${BENCH_KEY}`, 'content-type': 'application/json' }

/** Sends a request with the API key and a JSON body. */
export function callGateway(port: number, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: ADMIN_HEADERS,
    body: body === undefined ? undefined : JSON.stringify(body),
  })
}

/** Number of workers that are ready. */
export async function readyWorkers(port: number): Promise<number> {
  const response = await callGateway(port, 'GET', '/workers')
  const { workers } = (await response.json()) as { workers: { status: string }[] }
  return workers.filter(({ status }) => status === 'ready').length
}

/** Tokenizes a text through the gateway once its tokenizer is loaded. @returns token ids */
export async function tokenize(port: number, prompt: string): Promise<readonly number[]> {
  let ids: readonly number[] = []
  await waitUntil('the tokenizer is loaded', 15_000, async () => {
    const body = { model: 'bench', prompt, add_special_tokens: false }
    const response = await callGateway(port, 'POST', '/v1/tokenize', body)
    if (response.ok) ids = ((await response.json()) as { tokens: number[] }).tokens
    return response.ok
  })
  return ids
}
