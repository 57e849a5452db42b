/** Runs the gateway: control on the main thread, data on the others. Imported by entry files only. */
import { flushCompileCache } from 'node:module'
import { Counters, createCounters } from './balance/counters.ts'
import type { GatewayThread, PluginListener } from './boot.ts'
import type { KernelConfig } from './config/kernel-config.ts'
import { configDigests, type LoadedConfig } from './config/loaded-config.ts'
import type { ConfigSource } from './config/reload.ts'
import { ConfigReloads } from './config-reloads.ts'
import type { Logger } from './contracts/log.ts'
import type { MetricsSnapshot } from './contracts/metric.ts'
import { checkServerBinary } from './http/server-binary.ts'
import { loadPlugins, type PluginCatalog } from './load-plugins.ts'
import { declareControlMetrics } from './observe/control-metrics.ts'
import { createLogger } from './observe/log.ts'
import { mergeSnapshots } from './observe/metrics-snapshot.ts'
import {
  PlanReload,
  ReadConfigDigests,
  ReadMetrics,
  ReloadConfig,
  RequestShutdown,
  ShowConfig,
  type ShutdownDemand,
} from './plugin/kernel-commands.ts'
import { type ControlError, guardControl, ShutdownRequest } from './shutdown.ts'
import { ControlLink } from './threads/control-link.ts'
import { connectDataLink, readThreadSeed, runDataThread } from './threads/data-thread.ts'
import { DataThreads } from './threads/data-threads.ts'
import type { ThreadSeed } from './threads/messages.ts'
import { assertPortFree, holdFreePort } from './threads/ports.ts'
import { SharedMemory } from './threads/shared-memory.ts'

/** Header limit of the server library in bytes, which reads it from the environment when it is loaded. */
const HEADER_BLOCK_BYTES = 65_536
/** Added to the stop steps of a data thread's plugins before control no longer waits for it. */
const STOP_MARGIN_MS = 3_000

export interface ServeInfo {
  /** Base URL of the API; null without an API listener. */
  readonly url: string | null
  readonly listeners: readonly PluginListener[]
  readonly bootMs: number
  readonly plugins: readonly string[]
  /** Startup checks that have not passed although the API is open. */
  readonly missing: readonly string[]
  /** What should be corrected. */
  readonly warnings: readonly string[]
}

export interface ServeOptions {
  readonly catalog: PluginCatalog
  /** `import.meta.url` of the entry file that data threads run. */
  readonly entry: string
  /** Omitted by the entry file itself: a data thread receives it from control. */
  readonly config?: LoadedConfig
  /** Reads the configuration again, for SIGHUP and `weir config`. Default: no reload. */
  readonly source?: ConfigSource
  /** Called before the boot; the function it returns is called after the shutdown. Default: only plugins can end the gateway. */
  readonly watch?: (controls: GatewayControls) => () => void
  /** Compiles the code of a data thread by requests of its own; runs before the thread is ready. Default: nothing. */
  readonly warmUp?: (config: LoadedConfig) => Promise<void>
  /** False opens no API listener, only those of plugins. Default true. */
  readonly apiListener?: boolean
  readonly onReady?: (info: ServeInfo) => void
}

/** Controls of a running gateway, for the program that runs it. */
export interface GatewayControls {
  readonly log: Logger
  /** Configured time for which new connections are still accepted after a shutdown request, milliseconds. */
  readonly settleMs: number
  /** The first call drains, the second ends the drain at once. */
  demandShutdown(settleMs: number): void
  reload(): void
}

/** Resolves at the end of an orderly shutdown. @throws BootError, ConfigError, ControlError */
export async function serve(options: ServeOptions): Promise<void> {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(HEADER_BLOCK_BYTES)
  const seed = readThreadSeed()
  if (seed !== null) serveData(options, seed)
  else if (options.config !== undefined) await new Control(options, options.config).run()
}

function serveData({ catalog, warmUp }: ServeOptions, seed: ThreadSeed): void {
  const config = seed.config as LoadedConfig
  const log = createLogger({ level: config.kernel.log.level as 'info', thread: seed.index })
  const link = connectDataLink(seed, log)
  let thread: GatewayThread | null = null
  runDataThread({
    link,
    log,
    start: async () => {
      const { GatewayThread } = await import('./boot.ts')
      const plugins = await loadPlugins(config, catalog)
      const shared = new SharedMemory(seed.shared, seed.sharedPort)
      thread = new GatewayThread({ config, link, counters: seed.counters, shared, log }, plugins)
      await thread.start()
      await thread.ready()
      // Node holds what it has read of the compile cache until then: about 3 MB.
      flushCompileCache()
      // A replacement is needed at once.
      if (warmUp !== undefined && config.kernel.warmUp && !seed.isReplacement)
        await warmUp(config).catch((err: unknown) => log.warn({ err }, 'warm-up failed'))
      return { port: await thread.listenOnceStarted(seed.port) }
    },
    drain: (deadlineMs, settleMs) => thread?.drain(deadlineMs, settleMs) ?? Promise.resolve(),
    stop: () => thread?.stop() ?? Promise.resolve(),
    collect: (families) => thread?.metrics.snapshot(families) ?? [],
    closeServer: () => thread?.closeServers(),
  })
}

class Control {
  readonly #options: ServeOptions
  readonly #reloads: ConfigReloads
  readonly #log: Logger
  readonly #link: ControlLink
  readonly #counters: SharedArrayBuffer
  readonly #shared = new SharedMemory()
  readonly #threadCount: number
  #thread: GatewayThread | null = null
  #threads: DataThreads | null = null
  readonly #shutdown = new ShutdownRequest()
  #unguard: () => void = () => {}
  #failure: ControlError | null = null

  constructor(options: ServeOptions, config: LoadedConfig) {
    this.#options = options
    this.#log = createLogger({ level: config.kernel.log.level as 'info', thread: 0 })
    this.#threadCount = options.apiListener === false ? 0 : config.kernel.threads
    this.#link = new ControlLink({ log: this.#log, isData: this.#threadCount === 0 })
    this.#reloads = new ConfigReloads(config, { source: options.source, link: this.#link, log: this.#log })
    this.#counters = createCounters(config.kernel.limits.maxWorkers, this.#threadCount)
  }

  get #config(): LoadedConfig {
    return this.#reloads.config
  }

  get #shutdownTimes(): KernelConfig['shutdown'] {
    return this.#config.kernel.shutdown
  }

  async run(): Promise<void> {
    const shutdown = this.#shutdown
    const unwatch = this.#options.watch?.({
      log: this.#log,
      settleMs: this.#shutdownTimes.settleMs,
      demandShutdown: (settleMs) => shutdown.demand(settleMs),
      reload: () => void this.#reloads.reload().catch(() => {}),
    })
    try {
      const booting = this.#boot()
      this.#reloads.waitFor(booting)
      this.#options.onReady?.(await booting)
    } catch (error) {
      await this.#stop()
      unwatch?.()
      throw error
    }
    const settleMs = await shutdown.requested
    await Promise.race([this.#drain(settleMs), shutdown.hurried])
    await this.#stop()
    unwatch?.()
    if (this.#failure !== null) throw this.#failure
  }

  async #boot(): Promise<ServeInfo> {
    const { kernel } = this.#config
    const hasApi = this.#options.apiListener !== false
    if (hasApi) await assertPortFree(kernel.host, kernel.port, '--port')
    checkServerBinary({ expected: kernel.http.binarySha256, log: this.#log })
    const { GatewayThread } = await import('./boot.ts')
    const plugins = await loadPlugins(this.#config, this.#options.catalog)
    this.#thread = new GatewayThread(
      {
        config: this.#config,
        link: this.#link,
        counters: this.#counters,
        shared: this.#shared,
        log: this.#log,
      },
      plugins,
    )
    this.#reloads.begin(this.#thread, plugins, declareControlMetrics(this.#thread.metrics))
    this.#unguard = guardControl(this.#log, (error) => {
      this.#failure = error
      this.#shutdown.request(this.#shutdownTimes.settleMs)
    })
    this.#answerPlugins()
    await this.#thread.start()
    // A plugin may listen on the port by now, and the data threads would share it without an error.
    if (hasApi) await assertPortFree(kernel.host, kernel.port, '--port', this.#thread.listening)
    // First, so that workers are registered while the data threads start.
    await this.#thread.ready()
    const port = hasApi ? await this.#listen(this.#thread) : null
    this.#thread.isOpen = true
    return {
      url:
        port === null ? null : `http${kernel.tls === undefined ? '' : 's'}://${urlHost(kernel.host)}:${port}`,
      listeners: this.#thread.listening,
      bootMs: performance.now(),
      plugins: plugins.map((plugin) => plugin.manifest.name),
      missing: this.#thread.missing,
      warnings: this.#thread.warnings,
    }
  }

  async #listen(thread: GatewayThread): Promise<number> {
    const { kernel } = this.#config
    if (this.#threadCount === 0) {
      // Renewal of certificates opens a second listener, which cannot share a port that the system chose.
      const isChosen = kernel.tls !== undefined && kernel.port === 0
      if (!isChosen) return thread.listenOnceStarted(kernel.port)
      const held = await holdFreePort(kernel.host)
      return thread.listenOnceStarted(held.port).finally(held.release)
    }
    const column = new Counters(this.#counters, 0)
    this.#threads = new DataThreads({
      link: this.#link,
      log: this.#log,
      entry: new URL(this.#options.entry),
      count: this.#threadCount,
      host: kernel.host,
      port: kernel.port,
      counters: this.#counters,
      shared: this.#shared,
      config: () => this.#config,
      onExit: (index) => column.zeroColumn(index),
    })
    return (await this.#threads.start()).port
  }

  /** Commands that plugins send to control from any thread. */
  #answerPlugins(): void {
    this.#link.onCommand(RequestShutdown.name, (request) => {
      const isFirst = this.#shutdown.request(this.#shutdownTimes.settleMs)
      if (isFirst) this.#log.info({ ...(request as ShutdownDemand) }, 'plugin requested shutdown')
    })
    this.#link.onCommand(ReloadConfig.name, () => this.#reloads.reload())
    this.#link.onCommand(PlanReload.name, (text) => this.#reloads.plan(text as string | null))
    this.#link.onCommand(ShowConfig.name, () => this.#reloads.show())
    this.#link.onCommand(ReadConfigDigests.name, (key) =>
      configDigests(this.#config, Buffer.from(key as string, 'base64')),
    )
    this.#link.onCommand(ReadMetrics.name, (families) =>
      this.#readMetrics(families as readonly string[] | null),
    )
  }

  /** @param names null for all families */
  async #readMetrics(names: readonly string[] | null): Promise<MetricsSnapshot> {
    const snapshots = [
      this.#thread?.metrics.snapshot(names) ?? [],
      ...((await this.#threads?.collect(names)) ?? []),
    ]
    if (names === null) return mergeSnapshots(snapshots)
    // Threads that are dead or did not respond appear with all families.
    return mergeSnapshots(snapshots.map((families) => families.filter(({ name }) => names.includes(name))))
  }

  async #drain(settleMs: number): Promise<void> {
    const { graceMs } = this.#shutdownTimes
    this.#log.info({ grace_ms: graceMs }, 'shutting down')
    const endsAtMs = performance.now() + graceMs
    // Readiness probes on control must fail together with those on the data threads.
    if (this.#thread !== null) this.#thread.isDraining = true
    await this.#threads?.drain(graceMs, settleMs)
    // Control drains last, in the remaining time.
    await this.#thread?.drain(Math.max(1, endsAtMs - performance.now()), settleMs)
  }

  async #stop(): Promise<void> {
    const { stepMs } = this.#config.kernel.lifecycle
    // A thread stops its plugins one after the other, each within its limit.
    const limitMs = stepMs * Object.keys(this.#config.plugins).length + STOP_MARGIN_MS
    const left = (await this.#threads?.stop(limitMs)) ?? 0
    await this.#thread?.stop()
    this.#unguard()
    if (left > 0) this.#log.error({ threads: left }, 'data threads did not end')
  }
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
