/** The gateway under test: the built command with a generated configuration, one data thread, keys and metrics on. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Child, freePort, StopWaiting, startChild, waitUntil } from './process.ts'
import { BENCH_KEY, type Subject } from './subject.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const START_LIMIT_MS = 60_000

/** The gateway, and how long it took from its start to the first request it said it was ready for. */
export interface GatewaySubject extends Subject {
  readonly bootMs: number
}

/** What a gateway has on beside the usual. */
export interface GatewayFeatures {
  /** Members of the `kernel` section beside the usual ones. */
  readonly kernel?: Readonly<Record<string, unknown>>
  /** Sections of plugins beside the usual ones; a plugin is enabled by having one. */
  readonly plugins?: Readonly<Record<string, unknown>>
}

export interface GatewayOptions extends GatewayFeatures {
  /** Workers that are there from the start. */
  readonly workerPorts: readonly number[]
  /** Root of another checkout whose build is to be measured. */
  readonly against?: string
}

/** The whole configuration as a file would have it; JSON is YAML too. */
function configOf(port: number, { workerPorts, kernel, plugins }: GatewayOptions): object {
  return {
    kernel: {
      host: '127.0.0.1',
      port,
      threads: 1,
      log: { level: 'warn', access: false },
      shutdown: { graceMs: 0, settleMs: 0 },
      ...kernel,
    },
    plugins: {
      auth: { apiKey: BENCH_KEY },
      health: {},
      metrics: { port: 0 },
      generations: {},
      'http-workers': {},
      openapi: {},
      policies: {},
      chat: {},
      workers: { urls: workerPorts.map((workerPort) => `http://127.0.0.1:${workerPort}`) },
      ...plugins,
    },
  }
}

/** The built `weir` command. @throws when it is not built */
export function startWeir(args: readonly string[], root = ROOT): Child {
  const command = join(root, 'dist/plugins/cli.js')
  if (!existsSync(command)) throw new Error(`${command} is missing: run "npm run build" there first`)
  return startChild(process.execPath, [command, ...args])
}

/** Ready means: takes requests, and knows all of its first workers. @throws when that is not so in time */
export async function startGateway(options: GatewayOptions): Promise<GatewaySubject> {
  const directory = mkdtempSync(join(tmpdir(), 'weir-bench-gateway-'))
  const port = await freePort()
  const file = join(directory, 'weir.json')
  writeFileSync(file, JSON.stringify(configOf(port, options)))
  const startedAtMs = performance.now()
  const child = startWeir(['serve', '--config', file], options.against)
  const stop = async () => {
    await child.stop()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    // Without workers there is nothing to be ready for.
    const path = options.workerPorts.length === 0 ? '/liveness' : '/readiness'
    await waitUntil('the gateway is ready', START_LIMIT_MS, async () => {
      if (!child.isRunning()) throw new StopWaiting(child.errors())
      return (await fetch(`http://127.0.0.1:${port}${path}`)).ok
    })
    const bootMs = performance.now() - startedAtMs
    await waitUntil('every worker is ready', START_LIMIT_MS, async () => {
      return (await readyWorkers(port)) >= options.workerPorts.length
    })
    return { name: options.against === undefined ? 'gateway' : 'before', port, pid: child.pid, bootMs, stop }
  } catch (error) {
    await stop()
    throw new Error(`${(error as Error).message}\n${child.errors()}`)
  }
}

/** Whether a gateway did not start because its build lacks the policy or a plugin it was given. */
export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof Error &&
    /kernel\.policy (must be one of|is a policy of)|there is no plugin/.test(error.message)
  )
}

const ADMIN_HEADERS = { authorization: `Bearer ${BENCH_KEY}`, 'content-type': 'application/json' }

/** A call of the gateway's own API. */
export function callGateway(port: number, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: ADMIN_HEADERS,
    body: body === undefined ? undefined : JSON.stringify(body),
  })
}

async function readyWorkers(port: number): Promise<number> {
  const reply = await callGateway(port, 'GET', '/workers')
  const { workers } = (await reply.json()) as { workers: { status: string }[] }
  return workers.filter(({ status }) => status === 'ready').length
}
