/** The gateway under test: the built command with a generated configuration, one data thread, API key and metrics. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Child, freePort, StopWaiting, startChild, temporaryDirectory, waitUntil } from './process.ts'
import { BENCH_KEY, type Subject } from './subject.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const START_LIMIT_MS = 60_000

export interface GatewaySubject extends Subject {
  /** Time from the start of the process to its first 200 of `/readiness`. */
  readonly bootMs: number
}

/** Additions to the base configuration. */
export interface GatewayFeatures {
  /** Members of the `kernel` section. */
  readonly kernel?: Readonly<Record<string, unknown>>
  /** Sections of plugins; a section enables its plugin. */
  readonly plugins?: Readonly<Record<string, unknown>>
}

export interface GatewayOptions extends GatewayFeatures {
  /** Workers of the configuration. */
  readonly workerPorts: readonly number[]
  /** Root of another checkout whose build is started instead; null for this one. */
  readonly against?: string | null
}

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

/** Starts the built `weir` command. @throws if it is not built */
export function startWeir(args: readonly string[], root: string | null = null): Child {
  const command = join(root ?? ROOT, 'dist/plugins/cli.js')
  if (!existsSync(command)) throw new Error(`${command} is missing: run "npm run build" there first`)
  return startChild(process.execPath, [command, ...args])
}

/** Resolves when every worker of the configuration is ready. @throws after 60 s, with the gateway's error output */
export async function startGateway(options: GatewayOptions): Promise<GatewaySubject> {
  const port = await freePort()
  const file = join(temporaryDirectory(), 'weir.json')
  writeFileSync(file, JSON.stringify(configOf(port, options)))
  const startedAtMs = performance.now()
  const child = startWeir(['serve', '--config', file], options.against)
  try {
    // A gateway without workers never becomes ready.
    const path = options.workerPorts.length === 0 ? '/liveness' : '/readiness'
    await waitUntil('the gateway is ready', START_LIMIT_MS, async () => {
      if (!child.isRunning()) throw new StopWaiting(child.errors())
      return (await fetch(`http://127.0.0.1:${port}${path}`)).ok
    })
    const bootMs = performance.now() - startedAtMs
    await waitUntil('every worker is ready', START_LIMIT_MS, async () => {
      return (await readyWorkers(port)) >= options.workerPorts.length
    })
    const name = options.against == null ? 'gateway' : 'before'
    return { name, port, pid: child.pid, bootMs, stop: () => child.stop() }
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

/** Plugin sections with one worker: an external vendor that serves the Messages API. */
export function vendorAt(port: number): Readonly<Record<string, unknown>> {
  const vendor = {
    url: `http://127.0.0.1:${port}`,
    runtime_type: 'external',
    provider: 'anthropic',
    api_key: 'bench',
    models: [{ id: 'bench' }],
  }
  return { messages: {}, workers: { workers: [vendor] } }
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

/** Plugin sections with one worker that serves gRPC. */
export function grpcWorkerAt(port: unknown, labels: object = {}): Readonly<Record<string, unknown>> {
  const workers = [{ url: `grpc://127.0.0.1:${port}`, labels }]
  return { grpc: {}, parsers: {}, tokenizers: {}, workers: { workers } }
}
