/** The plugin contract: the parts of a plugin, and the host that gives it access to the gateway. */
import type { Static, TSchema } from 'typebox'
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { BackgroundWork, Detached, DetachedWork } from '../contracts/detached.ts'
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { Metrics, MetricsSnapshot } from '../contracts/metric.ts'
import type { PairStrategy } from '../contracts/pair.ts'
import type { PolicyFactory, PolicyOptions, PolicyOverlay } from '../contracts/policy.ts'
import type { ReloadPlan, ReloadReport, ShownConfig } from '../contracts/reload.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import type { RequestSlot } from '../contracts/request-facts.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import type { CommandToken, ReplicaToken, Token, Topic, TopicToken } from '../contracts/token.ts'
import type { Transport } from '../contracts/transport.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { ModeControl } from '../contracts/worker-control.ts'
import type { ListenerOptions } from '../http/listener.ts'

/** Plain data about a plugin; tools read it without running the plugin. */
export interface PluginManifest<Config extends TSchema = TSchema> {
  /** Equals the folder's name. */
  readonly name: string
  readonly version: string
  readonly description: string
  /** Services that it provides, on at least one thread. Two providers of one service are a boot error. */
  readonly provides?: readonly Token<unknown>[]
  /** Required services: their providers must be enabled and start earlier. */
  readonly uses?: readonly Token<unknown>[]
  /** Optional services: enabled providers start earlier. */
  readonly usesOptionally?: readonly Token<unknown>[]
  /**
   * Services under `uses` or `usesOptionally` that may be down, at the start too: the plugin then rejects only what needs
   * them. Every other service must work when the gateway starts.
   */
  readonly degradable?: readonly Token<unknown>[]
  /** Required plugins that start earlier, if the dependency is not a service: their routes or commands are used. */
  readonly dependencies?: readonly string[]
  /** Plugins that start earlier if they are enabled, so that their hooks run first. */
  readonly optionalDependencies?: readonly string[]
  /** Schema with defaults of the plugin's section; unknown keys are refused. */
  readonly config: Config
  /** Names of the policies that it registers; a configuration with any other name is rejected before the boot. */
  readonly policies?: readonly string[]
  /** For the command line only, as `ConfigFlag`: flags and environment variables that set keys of the plugin's section. */
  readonly flags?: readonly object[]
  /** Paths in its section, such as `apiKey` or `tenants.default`, that `reload` applies without a restart. */
  readonly reloads?: readonly string[]
}

/** Life-cycle steps after `register`; each is optional and has a deadline. */
export interface PluginLifecycle<Config = unknown> {
  /** Opens files and connections; a failure stops the boot. */
  start?(): void | Promise<void>
  /** Starts background work; every plugin has started. */
  ready?(): void | Promise<void>
  /**
   * Applies changed settings at the manifest's `reloads` without failing a request. Called on every thread, on control
   * first; an error on control cancels the reload.
   */
  reload?(config: Config): void | Promise<void>
  /**
   * What `reload` would do beyond using the new values, one line each, such as `drains worker http://10.0.0.1:8000`.
   * Changes nothing; called on control. An error means that `reload` would fail.
   */
  planReload?(config: Config): readonly string[]
  /** Rejects new work and finishes running work. */
  drain?(deadlineMs: number): void | Promise<void>
  /** Releases everything; safe to call twice. Called only after `start`, even if that failed. */
  stop?(): void | Promise<void>
}

/** A problem in a plugin's section that its schema cannot express. */
export interface SettingProblem {
  /** Keys in the section, such as `['workers', '0', 'url']`; empty for the section as a whole. */
  readonly path: readonly string[]
  /** Continues the path: `must be …`. Contains no secret. */
  readonly text: string
}

/** A plugin: its manifest and the function that registers its parts. */
export interface Plugin<Config extends TSchema = TSchema> {
  readonly manifest: PluginManifest<Config>
  /** Every problem in a section that is valid for the schema. Pure; called once, before the boot. */
  check?(config: Static<Config>, kernel: KernelConfig): Iterable<SettingProblem>
  /**
   * Plugins of the catalog to enable with this one, beyond the providers of the services that it `uses`; those that the
   * configuration sets to `false` stay disabled. Pure; called once, before the boot, with a section valid for the schema.
   *
   * @param isEnabled whether the configuration or another plugin has enabled a plugin
   */
  enables?(config: Static<Config>, isEnabled: (plugin: string) => boolean): Iterable<string>
  /**
   * Declares routes, hooks, commands and services. Synchronous; opens no file, connection, thread, timer or process
   * listener: a check of a configuration registers the plugins and discards them without `start` or `stop`. Runs on every
   * thread.
   */
  register(host: Host, config: Static<Config>): PluginLifecycle<Static<Config>> | void
}

/** Checks the shape at compile time; returns its argument. */
export function definePlugin<Config extends TSchema>(plugin: Plugin<Config>): Plugin<Config> {
  return plugin
}

/** This thread's copy of a value that control publishes. */
export interface ReplicaView<T> {
  readonly current: T
  /** 0 before the first publish. */
  readonly version: number
  /** Called on this thread after each publication. */
  onChange(listener: (next: T) => void): void
}

/** Address and limits of an HTTP listener of a plugin. */
export interface ListenOptions extends ListenerOptions {
  /** Setting of the port for error messages, such as `plugins.sim.listen.port`. */
  readonly portSetting?: string
}

/** An open HTTP listener of a plugin. */
export interface Listener {
  readonly host: string
  readonly port: number
  close(): void
}

/** When a readiness check counts. */
export interface ReadinessOptions {
  /** The check counts only until it has passed, at most for `kernel.lifecycle.readinessWaitMs` after the start. */
  readonly isStartup?: boolean
}

/** A service that does not work at the moment. */
export interface Outage {
  /** Name of its token. */
  readonly service: string
  /** Public: contains no address and no secret. */
  readonly problem: string
}

/** Access of one plugin to the gateway, on one thread. Every thread registers the plugin with a host of its own. */
export interface Host {
  /** Name of the plugin. */
  readonly plugin: string
  /** True on the control thread, which handles commands, publishes replicas and runs background work. */
  readonly isControl: boolean
  /** True on threads that serve requests. With `threads: 0` one thread is control and data. */
  readonly isData: boolean
  /** 0 for control, 1-based for data threads. */
  readonly threadIndex: number
  /** The current kernel configuration; a reload replaces it. */
  readonly kernelConfig: KernelConfig
  readonly log: Logger
  readonly metrics: Metrics

  /** Adds a route; only in `register`. */
  route(definition: RouteDefinition): void
  /** Adds a WebSocket route; only in `register`. The path may have HTTP routes too. */
  socket(definition: SocketRouteDefinition): void
  /** Every route declared so far by all plugins; complete from `start` on. */
  routes(): readonly RouteDefinition[]
  /** Adds a hook; only in `register`. */
  hook<Name extends HookName>(name: Name, hook: HookSignatures[Name], options?: HookOptions): HookSwitch
  /** Reserves a slot for a value of this plugin on each request; only in `register`. */
  slot<T>(): RequestSlot<T>

  /** @throws BootError if the manifest does not list the service under `provides` */
  provide<T>(token: Token<T>, service: T): void
  /** @throws BootError if the manifest does not list the service under `uses`, or no plugin provides it on this thread */
  use<T>(token: Token<T>): T
  /** Like `use`, but undefined if no plugin provides it on this thread; also for services under `usesOptionally`. */
  find<T>(token: Token<T>): T | undefined

  /**
   * Reports outages of a service that this plugin provides; only in `register`.
   * @param check returns the problem, or null while the service works; called for each request that needs the service
   * @throws BootError if the manifest does not list the service under `provides`
   */
  reportOutages<T>(token: Token<T>, check: () => string | null): void
  /** The problem of a service on this thread; null if it works, or its provider reports no outages. */
  outage<T>(token: Token<T>): string | null
  /** Every current outage on this thread. */
  outages(): readonly Outage[]
  /** Enabled plugins that use a service and do not declare it degradable: without it, the gateway must not start. */
  dependentsOf<T>(token: Token<T>): readonly string[]

  /** Runs a command on control; resolves with its result, rejects with its error. */
  command<Payload, Result>(token: CommandToken<Payload, Result>, payload: Payload): Promise<Result>
  /** Sets the one handler of a command; ignored on data threads. */
  onCommand<Payload, Result>(
    token: CommandToken<Payload, Result>,
    handler: (payload: Payload) => Result | Promise<Result>,
  ): void
  replica<T>(token: ReplicaToken<T>): ReplicaView<T>
  /** Control only: replaces the value on every thread; resolves when every thread has acknowledged it. */
  publish<T>(token: ReplicaToken<T>, next: T): Promise<void>

  /** Hints under a key, from any thread to all threads that subscribed to the key. */
  topic<Event>(token: TopicToken<Event>): Topic<Event>

  /**
   * Memory shared by all threads, zeroed when new and kept when a data thread is replaced. Names are per plugin. The first
   * call of a data thread outside `register` blocks until control has created the block, about a millisecond. Access it
   * with `Atomics`.
   *
   * @throws Error if the block exists with another size
   */
  shared(name: string, bytes: number): SharedArrayBuffer
  /**
   * A pool of worker threads for the whole gateway: control owns it, other threads send their tasks to control. Call it from
   * `start` on; control must open it in `start`. The plugin closes it.
   *
   * @param name unique per plugin
   * @param threads size of the pool
   * @param open creates the pool; called on control
   */
  processPool(name: string, threads: number, open: () => TaskPool): TaskPool

  /**
   * Registers a load balancing policy for the setting `kernel.policy` and the worker label `policy`; only in `register`.
   *
   * @param name one of the manifest's `policies`
   * @throws Error if the manifest does not list it, or another plugin registered it
   */
  policy(name: string, make: PolicyFactory, options?: PolicyOptions): void
  /** Wraps every policy; only in `register`. */
  policyOverlay(overlay: PolicyOverlay): void

  /** Selection of workers, and their shared counters. */
  readonly balance: WorkerBalance
  /** Sends requests to workers. */
  readonly upstream: Upstream
  /** Registers the transport of one connection mode; only in `register`. */
  transport(transport: Transport): void
  /** Registers the control operations (probes, discovery) of one connection mode; only in `register`. */
  workerControl(control: ModeControl): void
  /** Registers the prefill/decode strategy of one connection mode; only in `register`. */
  pairs(strategy: PairStrategy): void
  /**
   * Runs work without a client as a request; on data threads, from `ready` on.
   * @throws Error if the route is not declared, or this thread serves no requests
   */
  detached(work: DetachedWork): Detached
  /** Opens a separate HTTP listener; from `start` on. The host closes it at stop. */
  listen(options: ListenOptions): Promise<Listener>

  /** Adds a readiness check: it returns why the gateway is not ready, or null. */
  readiness(check: () => string | null, options?: ReadinessOptions): void
  /** Adds a check of control whose result is shown at the start; it does not affect readiness. */
  startupWarning(check: () => string | null): void
  /** `draining`, or the first reason of a readiness check; null if ready. */
  readinessReason(): string | null
  /** Results of the startup checks that do not pass, also after their time is over. */
  missingAtStartup(): readonly string[]
  /** True from the first shutdown signal on. */
  readonly isDraining: boolean

  /**
   * Starts a graceful shutdown, as SIGTERM does. Later calls have no effect.
   * @param reason for the log
   */
  shutdown(reason: string): void
  /**
   * Reloads the configuration, as SIGHUP does.
   * @throws reload_unavailable if the gateway has no configuration source, invalid_configuration with every problem; then
   *   nothing has changed
   */
  reload(): Promise<ReloadReport>
  /**
   * What a reload would do; changes nothing.
   * @param text YAML or JSON of a configuration; null plans the configuration file
   * @throws reload_unavailable, invalid_plan with every problem
   */
  planReload(text: string | null): Promise<ReloadPlan>
  /**
   * The effective configuration, with masked secrets.
   * @throws reload_unavailable if the gateway has no configuration source
   */
  showConfig(): Promise<ShownConfig>
  /**
   * A short digest of each section of the running configuration, to compare gateways. Without what each gateway has of its
   * own, such as its port; secrets cannot be found from it without the key.
   */
  configDigests(key: Buffer): Promise<Readonly<Record<string, string>>>
  /**
   * Counts work that runs without a request; drain waits for it within the grace period, then calls its `cancel`.
   */
  background(work: Promise<unknown> | BackgroundWork): void
  /**
   * Current metrics, summed over all threads; a thread that does not respond within a second counts with its last ones.
   * @param families only these, for frequent reads. Gauges that `onCollect` sets then have the values of the last scrape,
   *   unless it names them. Default: all
   */
  readMetrics(families?: readonly string[] | null): Promise<MetricsSnapshot>
}
