/** One serving thread from its configuration to listening, and back: read it top to bottom. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { assertPortFree } from './assert-port-free.ts'
import { Counters } from './balance/counters.ts'
import { ThreadBalance } from './balance/thread-balance.ts'
import { deepFreeze } from './config/deep-freeze.ts'
import type { KernelConfig } from './config/kernel-config.ts'
import type { LoadedConfig } from './config/loaded-config.ts'
import { importPlugin, withoutSource } from './config/plugin-source.ts'
import { Auth } from './contracts/auth.ts'
import { ClientAddresses } from './contracts/client-address.ts'
import type { Detached, DetachedWork } from './contracts/detached.ts'
import type { Logger, LogLevel } from './contracts/log.ts'
import { TrafficWatch } from './contracts/traffic.ts'
import { EngineLoadsReplica, PendingWorkersReplica, WorkerTableReplica } from './contracts/worker.ts'
import { BootError } from './errors/boot-error.ts'
import { compileRoute, unmatchedRoute } from './http/compile-route.ts'
import { type CompiledRoute, NO_HOOKS } from './http/compiled-route.ts'
import { type CompiledSocket, compileSocket, messageRoute, upgradeHooks } from './http/compiled-socket.ts'
import { connectionsPerThread } from './http/connection-limit.ts'
import { createCors } from './http/cors.ts'
import { openListener } from './http/listener.ts'
import { headerRules } from './http/request-headers.ts'
import { HttpServer } from './http/server.ts'
import { checkTlsFiles, toTlsFiles, trustAuthorities } from './http/tls-files.ts'
import { writeAccessLine } from './observe/access-log.ts'
import { createAccessLogger, setLogLevel } from './observe/log.ts'
import { ThreadMetrics } from './observe/metrics.ts'
import type { MetricsSnapshot } from './observe/metrics-snapshot.ts'
import { BackgroundWorks } from './plugin/background-works.ts'
import { Declarations } from './plugin/declarations.ts'
import type { Listener, ListenOptions, Plugin } from './plugin/define-plugin.ts'
import { missingServices, providesService, sortPlugins } from './plugin/graph.ts'
import { compileHooks } from './plugin/hooks.ts'
import { RunningConfig, type RunningConfigState } from './plugin/kernel-commands.ts'
import { openReplica } from './plugin/plugin-host.ts'
import { PluginSet } from './plugin/plugin-set.ts'
import { Services } from './plugin/services.ts'
import type { ThreadLink } from './threads/link.ts'
import type { SharedMemory } from './threads/shared-memory.ts'
import { within } from './threads/within.ts'
import { ThreadUpstream } from './upstream/thread-upstream.ts'

/** Plugins by name, each imported only when it is enabled. */
export type PluginCatalog = Readonly<Record<string, () => Promise<{ default: Plugin }>>>

export interface ThreadBootOptions {
  readonly config: LoadedConfig
  readonly catalog: PluginCatalog
  readonly link: ThreadLink
  readonly counters: SharedArrayBuffer
  readonly shared: SharedMemory
  readonly log: Logger
}

/** @throws BootError, ConfigError */
export async function loadPlugins(config: LoadedConfig, catalog: PluginCatalog): Promise<Plugin[]> {
  const names = Object.keys(config.plugins)
  const plugins = await Promise.all(
    names.map(async (name) => {
      const plugin = await importPlugin(name, config.plugins[name], catalog)
      if (plugin.manifest.name !== name) {
        throw new BootError(
          `the plugin enabled as ${name} calls itself ${plugin.manifest.name}; use that name under plugins`,
        )
      }
      return plugin
    }),
  )
  await assertServices(plugins, config, catalog)
  return sortPlugins(plugins)
}

/** A service that nobody provides: the plugins of the catalog that would are named. @throws BootError */
async function assertServices(
  plugins: readonly Plugin[],
  config: LoadedConfig,
  catalog: PluginCatalog,
): Promise<void> {
  const [missing] = missingServices(plugins)
  if (missing === undefined) return
  const { plugin, service } = missing
  const others = Object.keys(catalog).filter((name) => config.plugins[name] === undefined)
  const modules = await Promise.all(others.map((name) => catalog[name]()))
  const willing = modules
    .filter((module) => providesService(module.default, service))
    .map((module) => module.default.manifest.name)
  const advice =
    willing.length === 0
      ? `; no plugin of the catalog does either`
      : `; enable plugin ${willing.join(' or ')}, which provides it`
  throw new BootError(
    `plugin ${plugin} uses the service ${service}, which no enabled plugin provides${advice}`,
  )
}

/** A listener of a plugin's own. */
export interface PluginListener {
  readonly plugin: string
  readonly url: string
}

export class GatewayThread {
  readonly metrics: ThreadMetrics
  readonly balance: ThreadBalance
  readonly upstream: ThreadUpstream
  isDraining = false
  readonly #options: ThreadBootOptions
  readonly #declarations = new Declarations()
  readonly #services = new Services()
  readonly #background: BackgroundWorks
  readonly #plugins: PluginSet
  readonly #listeners: HttpServer[] = []
  /** Where plugins of this thread listen. */
  readonly listening: PluginListener[] = []
  readonly #traffic: TrafficWatch | null
  #server: HttpServer | null = null
  #reloading: Promise<void> = Promise.resolve()
  /** As it holds now. */
  #kernel: KernelConfig
  /** Of the content of the certificate files in use. */
  #tlsMark: string

  constructor(options: ThreadBootOptions, plugins: readonly Plugin[]) {
    const { config, link, log } = options
    const { kernel } = config
    this.#options = options
    this.#kernel = kernel
    if (kernel.caFile !== undefined) trustAuthorities(kernel.caFile)
    this.#tlsMark = kernel.tls === undefined ? '' : checkTlsFiles(kernel.tls)
    this.metrics = new ThreadMetrics((error) => log.error({ err: error }, 'a metrics refresh failed'))
    this.#background = new BackgroundWorks(this.metrics, log)
    const counters = new Counters(options.counters, link.index)
    const table = openReplica(link, WorkerTableReplica)
    this.balance = new ThreadBalance({
      counters,
      table,
      defaultPolicy: kernel.policy,
      prefillPolicy: kernel.prefillPolicy,
      decodePolicy: kernel.decodePolicy,
      breaker: kernel.breaker,
      onPickHook: (ctx) => ctx.hooks.onPick,
      metrics: this.metrics,
      shared: (name, bytes) => options.shared.block(name, bytes),
      loads: openReplica(link, EngineLoadsReplica),
      pending: openReplica(link, PendingWorkersReplica),
      log,
    })
    this.upstream = new ThreadUpstream({
      balance: this.balance,
      config: kernel.upstream,
      retry: kernel.retry,
      log,
    })
    table.onChange((next) => this.upstream.onWorkersChanged(next.workers))
    this.#plugins = new PluginSet(plugins, kernel.lifecycle.stepMs, log)
    this.#plugins.register(
      {
        link,
        declarations: this.#declarations,
        services: this.#services,
        kernelConfig: () => this.#kernel,
        log,
        metrics: this.metrics,
        balance: this.balance,
        policies: this.balance.registry,
        upstream: this.upstream,
        shared: options.shared,
        background: this.#background,
        detach: (work) => this.#detach(work),
        listen: (plugin, listen) => this.#listen(plugin, listen),
        isDraining: () => this.isDraining,
      },
      // Complete and checked when it was loaded.
      (plugin) => deepFreeze(withoutSource(config.plugins[plugin.manifest.name])),
    )
    this.balance.checkPolicies()
    this.upstream.auth = this.#services.lookUp(Auth) ?? null
    this.#traffic = this.#services.lookUp(TrafficWatch) ?? null
    this.upstream.traffic = this.#traffic
    if (this.#traffic !== null) this.balance.watch(this.#traffic)
    this.#requireAuth()
    if (link.isData) this.#server = this.#createServer()
  }

  /** Opens what the plugins open; a failure has stopped what had started. Then makes up for reloads since it was asked for. */
  async start(): Promise<void> {
    await this.#plugins.start()
    const { link, config } = this.#options
    // Control reloads itself first, to see whether it can.
    if (link.isControl) return
    const running = openReplica(link, RunningConfig)
    // Control waits for it, so that whoever asked for the change hears when it holds.
    const { listeners } = link.replica(RunningConfig.name, RunningConfig.initial)
    listeners.push((next) => this.#reloadLater(next as RunningConfigState | null))
    const now = running.current?.config ?? config
    if (isDeepStrictEqual(now, config)) return
    const hasChanged = (name: string) => !isDeepStrictEqual(now.plugins[name], config.plugins[name])
    this.#reloading = this.reload({ config: now, plugins: Object.keys(now.plugins).filter(hasChanged) })
    await this.#reloading
  }

  /** One after the other: the last that came is the one that holds. */
  #reloadLater(next: RunningConfigState | null): Promise<void> {
    if (next === null) return this.#reloading
    this.#reloading = this.#reloading
      .then(() => this.reload(next))
      .catch((err: unknown) => this.#options.log.error({ err }, 'a thread could not reload'))
    return this.#reloading
  }

  /** @returns the port taken */
  async listen(port: number): Promise<number> {
    if (this.#server === null) throw new BootError('this thread serves no requests')
    return this.#server.listen(this.#options.config.kernel.host, port)
  }

  ready(): Promise<void> {
    return this.#plugins.ready()
  }

  /**
   * Readiness turns at once; the listener closes after the settle time; running requests end or the grace is over.
   */
  async drain(graceMs: number, settleMs: number): Promise<void> {
    this.isDraining = true
    const endsAtMs = performance.now() + graceMs
    if (this.#server !== null) {
      // Open listeners keep the process alive meanwhile; when a second signal has closed them, nothing should.
      if (settleMs > 0) await sleep(Math.min(settleMs, graceMs / 2), undefined, { ref: false })
      this.#server.stopListening()
      await within(this.#server.whenIdle(), endsAtMs - performance.now())
      const left = this.#server.openRequests.size
      if (left > 0)
        this.#options.log.warn(
          { open_requests: left },
          'requests still open at the end of the grace period are cut',
        )
    }
    // What plugins serve comes after: the gateway's own requests may need it.
    for (const listener of this.#listeners) listener.stopListening()
    await within(Promise.all(this.#listeners.map((one) => one.whenIdle())), endsAtMs - performance.now())
    await this.#endBackground(endsAtMs)
    await this.#plugins.drain(Math.max(1, endsAtMs - performance.now()))
  }

  /** What requests have left running may end too; what does not is told. */
  async #endBackground(endsAtMs: number): Promise<void> {
    await within(this.#background.whenIdle(), endsAtMs - performance.now())
    const left = this.#background.cancel()
    if (left > 0)
      this.#options.log.warn(
        { background_work: left },
        'background work still under way at the end of the grace period is cancelled',
      )
  }

  /**
   * Takes on what has changed. Picks, retries and logs follow at once; plugins by themselves.
   * @throws unknown_policy, policy_not_allowed, BootError naming the plugin that refused
   */
  async reload({ config, plugins }: RunningConfigState): Promise<void> {
    const { kernel } = config
    const { policy, prefillPolicy, decodePolicy, tls } = kernel
    const tlsMark = tls === undefined ? '' : checkTlsFiles(tls)
    this.balance.reload({ defaultPolicy: policy, prefillPolicy, decodePolicy }, kernel.breaker)
    this.upstream.reload(kernel.retry)
    setLogLevel(kernel.log.level as LogLevel)
    // The files may have other content under the same names.
    if (tls !== undefined && tlsMark !== this.#tlsMark) await this.#server?.renewTls(toTlsFiles(tls))
    this.#tlsMark = tlsMark
    this.#kernel = kernel
    await this.#plugins.reload(plugins, (name) => deepFreeze(withoutSource(config.plugins[name])))
  }

  async stop(): Promise<void> {
    this.closeServers()
    await this.#plugins.stop()
    this.upstream.close()
    this.balance.close()
  }

  /** At once and synchronously; safe to call twice. Every app must be closed before its thread ends. */
  closeServers(): void {
    this.#server?.close()
    for (const server of this.#listeners.splice(0)) server.close()
  }

  collect(): MetricsSnapshot {
    return this.metrics.snapshot()
  }

  /** On every thread, so that control says it before any data thread is started. */
  #requireAuth(): void {
    if (this.#options.config.kernel.auth === 'off' || this.#services.lookUp(Auth) !== undefined) return
    const { routes, sockets } = this.#declarations
    const open = [...routes, ...sockets].find(({ definition }) => definition.access !== 'public')
    if (open === undefined) return
    const { path, access } = open.definition
    const method = 'method' in open.definition ? open.definition.method : 'a socket route'
    throw new BootError(
      `plugin ${open.plugin} declares ${method} ${path} for ${access} callers, but no plugin checks keys; ` +
        'enable plugin auth, or set kernel.auth to off to leave every route open',
    )
  }

  #detach(work: DetachedWork): Detached {
    if (this.#server === null) throw new Error('only data threads run work of requests')
    return this.#server.detach(work)
  }

  #createServer(): HttpServer {
    const { kernel } = this.#options.config
    const auth = kernel.auth === 'off' ? null : (this.#services.lookUp(Auth) ?? null)
    const clients = this.#services.lookUp(ClientAddresses) ?? null
    const traffic = this.#traffic
    const routes = this.#declarations.routes.map(({ plugin, definition }) =>
      compileRoute(definition, {
        hooks: compileHooks(this.#declarations.hooks, plugin, definition),
        auth,
        metrics: traffic?.route(definition.method, definition.path) ?? null,
      }),
    )
    const sockets = this.#declarations.sockets.map(({ plugin, definition }) =>
      compileSocket(definition, {
        hooks: compileHooks(this.#declarations.hooks, plugin, messageRoute(definition)),
        auth,
        metrics: traffic && {
          upgrade: traffic.route('GET', definition.path),
          message: traffic.route('MESSAGE', definition.path),
        },
      }),
    )
    this.#declarations.onHooksChanged = () => this.#recompileHooks(routes, sockets)
    const accessLog = kernel.log.access && kernel.log.level !== 'silent' ? this.#createAccessLog() : null
    const paused = this.metrics
      .gauge({
        name: 'weir_accept_paused',
        help: 'Threads that refuse connections because of kernel.http.maxConnections.',
      })
      .labels()
    const server = new HttpServer({
      routes,
      sockets,
      clients,
      detachedMetrics: (path) => traffic?.route('DETACHED', path) ?? null,
      unmatched: { ...unmatchedRoute(traffic?.route('OTHER', null) ?? null), hooks: NO_HOOKS },
      headerRules: headerRules({
        declared: [
          ...this.balance.registry.headers,
          ...this.#declarations.routes.flatMap((route) => route.definition.headers ?? []),
          ...this.#declarations.sockets.flatMap((socket) => socket.definition.headers ?? []),
          ...this.#declarations.hooks.flatMap((hook) => hook.options.headers ?? []),
          ...(clients === null ? [] : [clients.header]),
        ],
        forwarded: kernel.upstream.forwardHeaders,
        requestIdHeaders: kernel.http.requestIdHeaders,
        maxCount: kernel.http.maxHeaderCount,
        maxBytes: kernel.http.maxHeaderBytes,
      }),
      maxBodyBytes: kernel.http.maxBodyBytes,
      maxJsonDepth: kernel.http.maxJsonDepth,
      client: {
        bodyIdleMs: kernel.http.bodyIdleMs,
        bodyMinRate: kernel.http.bodyMinBytesPerSecond,
        replyIdleMs: kernel.http.replyIdleMs,
      },
      heartbeatMs: kernel.http.heartbeatMs,
      keepAlive: kernel.http.keepAlive,
      connections: {
        max: connectionsPerThread(kernel.http.maxConnections, kernel.threads),
        log: this.#options.log,
        onChange: (isPaused) => {
          paused.value = isPaused ? 1 : 0
        },
      },
      tls: kernel.tls === undefined ? null : toTlsFiles(kernel.tls),
      cors: createCors(kernel.http.corsOrigins),
      log: this.#options.log,
      access:
        accessLog === null
          ? null
          : (ctx, durationMs) => {
              if (kernel.log.probes || ctx.route.isProbe !== true) writeAccessLine(accessLog, ctx, durationMs)
            },
    })
    traffic?.serving({
      openRequestTimesMs: () => Array.from(server.openRequests, (ctx) => ctx.startedAtMs),
      openSockets: sockets.length === 0 ? null : () => server.openSockets,
    })
    return server
  }

  #createAccessLog(): Logger {
    const { config, link } = this.#options
    const dropped = this.metrics.counter({
      name: 'weir_access_log_dropped_lines_total',
      help: 'Access log lines that were lost because nobody read standard output fast enough.',
    })
    const count = dropped.labels()
    return createAccessLogger({
      level: config.kernel.log.level,
      thread: link.index,
      onDrop: () => count.inc(),
    })
  }

  /** A hook was switched on or off on this thread. */
  #recompileHooks(routes: readonly CompiledRoute[], sockets: readonly CompiledSocket[]): void {
    this.#declarations.sockets.forEach(({ plugin, definition }, index) => {
      const hooks = compileHooks(this.#declarations.hooks, plugin, messageRoute(definition))
      sockets[index].message.hooks = hooks
      sockets[index].upgrade.hooks = upgradeHooks(hooks)
    })
    this.#declarations.routes.forEach(({ plugin, definition }, index) => {
      routes[index].hooks = compileHooks(this.#declarations.hooks, plugin, definition)
    })
  }

  async #listen(plugin: string, options: ListenOptions): Promise<Listener> {
    const { host, port: wanted, portSetting = `the settings of plugin ${plugin}` } = options
    // Data threads share the port that the first of them has taken.
    if (this.#options.link.isControl) await assertPortFree(host, wanted, portSetting)
    const { server, port } = await openListener(options, this.#options.config.kernel.http, this.#options.log)
    this.#listeners.push(server)
    this.listening.push({ plugin, url: `http://${host}:${port}` })
    return { host, port, close: () => server.close() }
  }
}
