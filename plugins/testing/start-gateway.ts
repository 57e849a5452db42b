/** Starts a gateway in the process of a test, on free ports. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { serveInProcess } from './serve-in-process.ts'

/** Longest time until the configured workers are ready. */
const READY_LIMIT_MS = 30_000
const READY_POLL_MS = 20

export interface TestGatewayOptions {
  /**
   * Sections of plugins, as in the configuration file; `false` disables a plugin. With `auth`, requests need a key; without
   * it, routes are open. A `$path` is relative to the working directory.
   */
  readonly plugins?: Readonly<Record<string, unknown>>
  /** Plugins under test, enabled with the section of their name, or an empty one. */
  readonly own?: readonly Plugin[]
  /** Settings of the kernel, as in the configuration file. Default: one thread, any free port, errors are logged. */
  readonly kernel?: Readonly<Record<string, unknown>>
  /** For `$env` references. Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface TestGateway {
  /** Base URL of the API, without a slash at the end. */
  readonly url: string
  readonly port: number
  /** Page of the metrics; null if plugin metrics is disabled. */
  readonly metricsUrl: string | null
  /** GET, or any request by `init`. @param path with a leading slash */
  get(path: string, init?: RequestInit): Promise<Response>
  /** POST with a JSON body. @param path with a leading slash */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** Changes the configuration that a reload reads: other sections of plugins, and of the kernel. */
  rewrite(plugins: Readonly<Record<string, unknown>>, kernel?: object): void
  /** Ends open requests and closes everything. Idempotent. */
  stop(): Promise<void>
}

/**
 * Starts a gateway in this process. Resolves when it listens and the workers of the configuration are ready.
 *
 * @throws ConfigError with every problem of the configuration, BootError; Error if the workers are not ready within 30 s
 * @example const gateway = await startGateway({ own: [plugin], plugins: { chat: {}, workers: { urls: [engine.url] } } })
 */
export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { plugins = {} } = options
  const gateway = await openGateway({
    ...options,
    kernel: {
      ...(plugins.auth === undefined && { auth: 'off' }),
      ...options.kernel,
    },
    plugins: { health: {}, ...(plugins.auth === undefined && { auth: false }), ...plugins },
  })
  try {
    if (hasWorkers(plugins.workers)) await workersReady(gateway)
  } catch (error) {
    await gateway.stop()
    throw error
  }
  return gateway
}

function hasWorkers(section: unknown): boolean {
  const { urls = [], workers = [] } = (section ?? {}) as { urls?: unknown[]; workers?: unknown[] }
  return urls.length + workers.length > 0
}

async function workersReady(gateway: TestGateway): Promise<void> {
  const endsAtMs = performance.now() + READY_LIMIT_MS
  for (;;) {
    const response = await gateway.get('/readiness')
    const text = await response.text()
    if (response.ok) return
    if (performance.now() >= endsAtMs) throw new Error(`the workers are not ready: ${text}`)
    await sleep(READY_POLL_MS)
  }
}

/** Starts a gateway with these sections only; resolves when it listens. Errors as of `startGateway`. */
export async function openGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const { own = [], plugins = {}, env = process.env } = options
  let text = configText(options, plugins)
  const { info, stop } = await serveInProcess({ own, env, text: () => text })
  const { url, listeners } = info
  const base = url as string
  const metrics = listeners.find(({ plugin }) => plugin === 'metrics')
  return {
    url: base,
    port: Number(new URL(base).port),
    metricsUrl: metrics === undefined ? null : `${metrics.url}/metrics`,
    get: (path, init) => fetch(base + path, init),
    post: (path, body, headers) =>
      fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    rewrite: (sections, kernel) => {
      text = configText(options, { ...plugins, ...sections }, kernel)
    },
    stop,
  }
}

/** Short intervals: the gateway drains at once. */
function configText(
  { kernel = {}, own = [] }: TestGatewayOptions,
  plugins: Readonly<Record<string, unknown>>,
  more: object = {},
): string {
  const { log, shutdown, ...settings } = kernel as Record<string, object>
  return JSON.stringify({
    kernel: {
      threads: 0,
      port: 0,
      log: { level: 'error', ...log },
      shutdown: { graceMs: 500, settleMs: 0, ...shutdown },
      ...settings,
      ...more,
    },
    plugins: {
      ...Object.fromEntries(own.map((plugin) => [plugin.manifest.name, {}])),
      'http-workers': {},
      ...plugins,
      metrics: plugins.metrics === false ? false : { port: 0, ...(plugins.metrics as object | undefined) },
    },
  })
}
