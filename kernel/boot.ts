/** Life cycle of one gateway thread: boot, listen, reload, drain, stop. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { Counters } from './balance/counters.ts'
import { ThreadBalance } from './balance/thread-balance.ts'
import { deepFreeze } from './config/deep-freeze.ts'
import type { KernelConfig } from './config/kernel-config.ts'
import type { LoadedConfig } from './config/loaded-config.ts'
import { withoutSource } from './config/plugin-source.ts'
import { Auth, type AuthService, Sessions } from './contracts/auth.ts'
import type { Detached, DetachedWork } from './contracts/detached.ts'
import type { Logger, LogLevel } from './contracts/log.ts'
import { ModelTargets } from './contracts/model-targets.ts'
import { ClientAddresses } from './contracts/request-facts.ts'
import { TrafficWatch } from './contracts/traffic.ts'
import { EngineLoadsReplica, PendingWorkersReplica, WorkerTableReplica } from './contracts/worker.ts'
import { createServer } from './create-server.ts'
import { BootError } from './errors/boot-error.ts'
import { openListener } from './http/listener.ts'
import type { HttpServer } from './http/server.ts'
import { type CheckedTlsFiles, checkTlsFiles, toTlsFiles, trustAuthorities } from './http/tls-files.ts'
import { setLogLevel } from './observe/log.ts'
import { ThreadMetrics } from './observe/metrics.ts'
import { BackgroundWorks } from './plugin/background-works.ts'
import { Declarations } from './plugin/declarations.ts'
import type { Listener, ListenOptions, Plugin } from './plugin/define-plugin.ts'
import { RunningConfig, type RunningConfigState } from './plugin/kernel-commands.ts'
import { openReplica } from './plugin/plugin-host.ts'
import { PluginSet } from './plugin/plugin-set.ts'
import { ReadinessChecks, StartupWaitReplica } from './plugin/readiness-checks.ts'
import { Services } from './plugin/services.ts'
import type { ThreadLink } from './threads/link.ts'
import { assertPortFree } from './threads/ports.ts'
import { settlesWithin } from './threads/settles-within.ts'
import type { SharedMemory } from './threads/shared-memory.ts'
import { Topics, topicBytes } from './threads/topics.ts'
import { ThreadUpstream } from './upstream/thread-upstream.ts'

/** Short enough for liveness probes on the API port. */
const LISTEN_WAIT_MS = 5_000
const LISTEN_CHECK_MS = 10

export interface ThreadBootOptions {
  readonly config: LoadedConfig
  readonly link: ThreadLink
  readonly counters: SharedArrayBuffer
  readonly shared: SharedMemory
  readonly log: Logger
}

export interface PluginListener {
  readonly plugin: string
  readonly url: string
}

export class GatewayThread {
  readonly metrics: ThreadMetrics
  readonly balance: ThreadBalance
  readonly upstream: ThreadUpstream
  isDraining = false
  /** Whether the API can be reached, or has no port. Set by control for its data threads. */
  isOpen = false
  readonly #options: ThreadBootOptions
  readonly #declarations = new Declarations()
  readonly #services: Services
  readonly #readiness: ReadinessChecks
  /** Ends the wait of the startup checks, on control. */
  #startupWait: NodeJS.Timeout | undefined
  readonly #background: BackgroundWorks
  readonly #topics: Topics
  readonly #plugins: PluginSet
  readonly #listeners: HttpServer[] = []
  readonly listening: PluginListener[] = []
  #traffic: TrafficWatch | null = null
  #server: HttpServer | null = null
  #reloading: Promise<void> = Promise.resolve()
  #kernel: KernelConfig
  /** The certificate files in use; null without TLS. */
  #tlsFiles: CheckedTlsFiles | null

  constructor(options: ThreadBootOptions, plugins: readonly Plugin[]) {
    const { config, link, log } = options
    const { kernel } = config
    this.#options = options
    this.#kernel = kernel
    this.#services = new Services(plugins.map(({ manifest }) => manifest))
    const startupWait = openReplica(link, StartupWaitReplica)
    this.#readiness = new ReadinessChecks(() => startupWait.current.isOver)
    // A probe port of control opens earlier.
    this.#readiness.add(() => (this.isOpen ? null : 'starting'), false)
    if (kernel.caFile !== undefined) trustAuthorities(kernel.caFile)
    this.#tlsFiles = kernel.tls === undefined ? null : checkTlsFiles(kernel.tls)
    this.metrics = new ThreadMetrics((error) => log.error({ err: error }, 'metrics refresh failed'))
    this.#background = new BackgroundWorks(this.metrics, log)
    const counters = new Counters(options.counters, link.index)
    this.#topics = new Topics({
      memory: options.shared.block('topics', topicBytes(counters.layout.columnCount)),
      threadIndex: link.index,
      log,
    })
    const table = openReplica(link, WorkerTableReplica)
    this.balance = new ThreadBalance({
      counters,
      table,
      defaultPolicy: kernel.policy,
      prefillPolicy: kernel.prefillPolicy,
      decodePolicy: kernel.decodePolicy,
      breaker: kernel.breaker,
      metrics: this.metrics,
      shared: (name, bytes) => options.shared.block(name, bytes),
      loads: openReplica(link, EngineLoadsReplica),
      pending: openReplica(link, PendingWorkersReplica),
      log,
    })
    this.upstream = new ThreadUpstream(this.balance, kernel, log)
    table.onChange((next) => this.upstream.onWorkersChanged(next.workers))
    this.#plugins = new PluginSet(plugins, kernel.lifecycle.stepMs, log)
    try {
      this.#registerPlugins()
      const auth = this.#services.lookUp(Auth) ?? null
      this.#traffic = this.#services.lookUp(TrafficWatch) ?? null
      const targets = this.#services.lookUp(ModelTargets) ?? null
      this.upstream.connect(auth, this.#traffic, targets)
      this.balance.targets = targets
      if (this.#traffic !== null) this.balance.watch(this.#traffic)
      this.#requireAuth()
      if (link.isData) this.#server = this.#createServer(auth)
    } catch (error) {
      this.#release()
      throw error
    }
  }

  /** @throws PluginMistakes */
  #registerPlugins(): void {
    const { config, link, log, shared } = this.#options
    this.#plugins.register(
      {
        link,
        declarations: this.#declarations,
        services: this.#services,
        readiness: this.#readiness,
        kernelConfig: () => this.#kernel,
        log,
        metrics: this.metrics,
        balance: this.balance,
        policies: this.balance.registry,
        upstream: this.upstream,
        shared,
        topics: this.#topics,
        background: this.#background,
        detach: (work) => this.#detach(work),
        listen: (plugin, listen) => this.#listen(plugin, listen),
        isDraining: () => this.isDraining,
      },
      // Defaults were filled in and the section was checked when it was loaded.
      ({ manifest }) => settingsOf(config, manifest.name),
    )
    this.balance.checkPolicies()
  }

  #createServer(auth: AuthService | null): HttpServer {
    const { config, link, log } = this.#options
    return createServer({
      kernel: this.#kernel,
      threadIndex: link.index,
      declarations: this.#declarations,
      disabledRoutes: config.disabledRoutes,
      auth: this.#kernel.auth === 'off' ? null : auth,
      sessions: this.#services.lookUp(Sessions) ?? null,
      clients: this.#services.lookUp(ClientAddresses) ?? null,
      traffic: this.#traffic,
      policyHeaders: this.balance.registry.headers,
      metrics: this.metrics,
      log,
    })
  }

  /** End of validity of the certificates in use, milliseconds since the epoch, by setting. */
  get certificatesExpireAtMs(): ReadonlyMap<string, number> {
    return this.#tlsFiles?.expiresAtMs ?? new Map()
  }

  /** Starts the plugins, then applies reloads that were published meanwhile. A failed start stops the started plugins. */
  async start(): Promise<void> {
    await this.#plugins.start()
    const { link, config } = this.#options
    // Control reloads before it publishes.
    if (link.isControl) return
    const running = openReplica(link, RunningConfig)
    // The replica's own listeners, because control waits for their promises before it confirms a reload.
    const { listeners } = link.replica(RunningConfig.name, RunningConfig.initial)
    listeners.push((next) => this.#reloadLater(next as RunningConfigState | null))
    const now = running.current?.config ?? config
    if (isDeepStrictEqual(now, config)) return
    const hasChanged = (name: string) => !isDeepStrictEqual(now.plugins[name], config.plugins[name])
    this.#reloading = this.reload({ config: now, plugins: Object.keys(now.plugins).filter(hasChanged) })
    await this.#reloading
  }

  /** Reloads run one after another; the last one stays in effect. */
  #reloadLater(next: RunningConfigState | null): Promise<void> {
    if (next === null) return this.#reloading
    this.#reloading = this.#reloading
      .then(() => this.reload(next))
      .catch((err: unknown) => this.#options.log.error({ err }, 'thread failed to reload'))
    return this.#reloading
  }

  /** @returns the port */
  async listen(port: number): Promise<number> {
    if (this.#server === null) throw new BootError('this thread serves no requests')
    const taken = await this.#server.listen(this.#options.config.kernel.host, port)
    this.isOpen = true
    return taken
  }

  /**
   * Listens when the startup checks have passed, at the latest after 5 s: balancers without health checks send requests as
   * soon as the port is open.
   * @returns the port
   */
  async listenOnceStarted(port: number): Promise<number> {
    const endsAtMs = performance.now() + LISTEN_WAIT_MS
    if (this.#readiness.isStarting())
      this.#options.log.info(
        { reasons: this.#readiness.missing(), max_wait_ms: LISTEN_WAIT_MS },
        'port not open yet',
      )
    while (this.#readiness.isStarting() && performance.now() < endsAtMs) await sleep(LISTEN_CHECK_MS)
    return this.listen(port)
  }

  /** Startup checks that have not passed, such as `1 of 3 configured workers not yet registered`. */
  get missing(): readonly string[] {
    return this.#readiness.missing()
  }

  /** What does not keep the gateway from serving, and should be corrected. */
  get warnings(): readonly string[] {
    return this.#readiness.warnings()
  }

  async ready(): Promise<void> {
    await this.#plugins.ready()
    if (this.#options.link.isControl) this.#beginStartupWait()
  }

  #beginStartupWait(): void {
    const { link, log } = this.#options
    const end = () => {
      link
        .publish(StartupWaitReplica.name, { isOver: true })
        .catch((err: unknown) => log.error({ err }, 'end of the startup wait not published'))
    }
    this.#startupWait = setTimeout(end, this.#kernel.lifecycle.readinessWaitMs).unref()
  }

  /**
   * Readiness fails at once. The listener closes after the settle time; then running requests may finish until the grace
   * period ends.
   *
   * @param graceMs grace period, milliseconds
   * @param settleMs time for load balancers to notice, milliseconds; part of the grace period
   */
  async drain(graceMs: number, settleMs: number): Promise<void> {
    this.isDraining = true
    const endsAtMs = performance.now() + graceMs
    if (this.#server !== null) {
      // Clients learn of the end with their next response, before the listener closes.
      this.#server.closesConnections = true
      // Not referenced: the open listener keeps the process alive, and a second signal closes it.
      if (settleMs > 0) await sleep(Math.min(settleMs, graceMs / 2), undefined, { ref: false })
      // Right after a round of the event loop that accepts: a connection that waits when the listener closes is reset, and its
      // request may have been sent.
      await new Promise(setImmediate)
      this.#server.stopListening()
      await settlesWithin(this.#server.whenIdle(), endsAtMs - performance.now())
      const left = this.#server.openRequests.size
      if (left > 0)
        this.#options.log.warn({ open_requests: left }, 'requests cut at the end of the grace period')
    }
    // Listeners of plugins close after the requests, which may depend on them.
    for (const listener of this.#listeners) listener.stopListening()
    await settlesWithin(
      Promise.all(this.#listeners.map((one) => one.whenIdle())),
      endsAtMs - performance.now(),
    )
    await this.#endBackground(endsAtMs)
    await this.#plugins.drain(Math.max(1, endsAtMs - performance.now()))
  }

  /** Waits for background work, then cancels the rest. */
  async #endBackground(endsAtMs: number): Promise<void> {
    await settlesWithin(this.#background.whenIdle(), endsAtMs - performance.now())
    const left = this.#background.cancel()
    if (left > 0)
      this.#options.log.warn(
        { background_work: left },
        'background work cancelled at the end of the grace period',
      )
  }

  /**
   * Applies a new configuration.
   * @throws unknown_policy, policy_not_allowed, BootError naming the plugin that failed
   */
  async reload({ config, plugins }: RunningConfigState): Promise<void> {
    const { kernel } = config
    const { policy, prefillPolicy, decodePolicy, tls } = kernel
    const tlsFiles = tls === undefined ? null : checkTlsFiles(tls)
    this.balance.reload({ defaultPolicy: policy, prefillPolicy, decodePolicy }, kernel.breaker)
    this.upstream.reload(kernel.retry)
    setLogLevel(kernel.log.level as LogLevel)
    // The files may have new content under the same names.
    if (tls !== undefined && tlsFiles?.digest !== this.#tlsFiles?.digest)
      await this.#server?.renewTls(toTlsFiles(tls))
    this.#tlsFiles = tlsFiles
    this.#kernel = kernel
    await this.#plugins.reload(plugins, (name) => settingsOf(config, name))
  }

  /** What plugins would do in a reload. @throws BootError naming the plugin whose reload would fail */
  planReload({ config, plugins }: RunningConfigState): string[] {
    return this.#plugins.planReload(plugins, (name) => settingsOf(config, name))
  }

  async stop(): Promise<void> {
    this.closeServers()
    await this.#plugins.stop()
    this.#release()
  }

  /** Releases everything that is open without plugins. */
  #release(): void {
    clearTimeout(this.#startupWait)
    this.upstream.close()
    this.balance.close()
    this.#topics.close()
  }

  /** Synchronous and safe to call twice. A thread that ends with an open server app aborts the process. */
  closeServers(): void {
    this.#server?.close()
    for (const server of this.#listeners.splice(0)) server.close()
  }

  /** Runs on every thread, so that the boot fails on control before a data thread starts. */
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
    if (this.#server === null) throw new Error('detached work runs on data threads only')
    return this.#server.detach(work)
  }

  async #listen(plugin: string, options: ListenOptions): Promise<Listener> {
    const { host, port: wanted, portSetting = `the settings of plugin ${plugin}` } = options
    // On data threads the port is shared: it is in use from the first one on.
    if (this.#options.link.isControl) await assertPortFree(host, wanted, portSetting)
    const { server, port } = await openListener(options, this.#options.config.kernel.http, this.#options.log)
    this.#listeners.push(server)
    this.listening.push({ plugin, url: `http://${host}:${port}` })
    return { host, port, close: () => server.close() }
  }
}

/** The section of a plugin, without what locates the plugin. */
function settingsOf(config: LoadedConfig, plugin: string): object {
  return deepFreeze(withoutSource(config.plugins[plugin]))
}
