/** The plugin contract: what a plugin is, and the host through which it reaches everything else. */
import type { Static, TSchema } from 'typebox'
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { BackgroundWork } from '../contracts/background.ts'
import type { Detached, DetachedWork } from '../contracts/detached.ts'
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { Logger } from '../contracts/log.ts'
import type { Metrics } from '../contracts/metric.ts'
import type { MetricsSnapshot } from '../contracts/metric-snapshot.ts'
import type { ModeControl } from '../contracts/mode-control.ts'
import type { PairStrategy } from '../contracts/pair.ts'
import type { PolicyFactory, PolicyOptions, PolicyOverlay } from '../contracts/policy.ts'
import type { ReloadReport } from '../contracts/reload.ts'
import type { RequestSlot } from '../contracts/request-facts.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import type { CommandToken, ReplicaToken, Token } from '../contracts/token.ts'
import type { Topic, TopicToken } from '../contracts/topic.ts'
import type { Transport } from '../contracts/transport.ts'
import type { Upstream } from '../contracts/upstream.ts'

/** Plain data about a plugin; tools read it without running anything. */
export interface PluginManifest<Config extends TSchema = TSchema> {
  /** Equals the folder's name. */
  readonly name: string
  readonly version: string
  readonly description: string
  /** Services that it may provide, on some thread at least. One plugin provides a service; two are a boot error. */
  readonly provides?: readonly Token<unknown>[]
  /** Services that it cannot do without: who provides them must be enabled, and starts earlier. */
  readonly uses?: readonly Token<unknown>[]
  /** Services that it takes where somebody provides them, who then starts earlier. */
  readonly usesOptionally?: readonly Token<unknown>[]
  /** Plugins that must be enabled too and start earlier, where no service says so: their routes or commands are asked. */
  readonly dependencies?: readonly string[]
  /** Plugins that start earlier when they are enabled, where no service says so: their hooks come first. */
  readonly optionalDependencies?: readonly string[]
  /** Schema with defaults of the plugin's section; unknown keys are refused. */
  readonly config: Config
  /** Wire names of the policies that it registers: a configuration that names another is refused before the boot. */
  readonly policies?: readonly string[]
  /** For the command alone, as `ConfigFlag`: flags and environment variables that set something of the plugin's section. */
  readonly flags?: readonly object[]
  /** Paths within its section, such as `apiKey` or `tenants.default`, that `reload` takes on while the gateway runs. */
  readonly reloads?: readonly string[]
}

/** The steps of a plugin's life after `register`; each has a deadline. All may be left out. */
export interface PluginLifecycle<Config = unknown> {
  /** Open files and connections; a failure stops the boot. */
  start?(): void | Promise<void>
  /** Begin background work: every plugin has started. */
  ready?(): void | Promise<void>
  /**
   * Settings at the manifest's `reloads` have changed: take them on without losing a request. Called on each thread, on
   * control first; what throws there changes nothing elsewhere. What data threads do later than at once is not waited for.
   */
  reload?(config: Config): void | Promise<void>
  /** Refuse new work, finish what runs. */
  drain?(deadlineMs: number): void | Promise<void>
  /** Release everything; safe to call twice. */
  stop?(): void | Promise<void>
}

/** A mistake in a plugin's section that its schema cannot see. */
export interface SettingProblem {
  /** Keys within the section, such as `['workers', '0', 'url']`; none for the section as a whole. */
  readonly path: readonly string[]
  /** Goes on after the path: `must be …`. Names no secret. */
  readonly text: string
}

export interface Plugin<Config extends TSchema = TSchema> {
  readonly manifest: PluginManifest<Config>
  /** All mistakes in a section that fits the schema, for who loads the configuration. Pure; asked once, before any boot. */
  check?(config: Static<Config>, kernel: KernelConfig): Iterable<SettingProblem>
  /**
   * Plugins of the catalog to enable with this one, beyond the providers of the services that it `uses`; those that the
   * configuration sets to `false` stay disabled. Pure; called once, before any boot, with a section that fits the schema.
   *
   * @param isEnabled whether the configuration or another plugin has enabled a plugin
   */
  enables?(config: Static<Config>, isEnabled: (plugin: string) => boolean): Iterable<string>
  /** Declares routes, hooks, commands and services. Synchronous, no I/O. Runs on every thread. */
  register(host: Host, config: Static<Config>): PluginLifecycle<Static<Config>> | void
}

/** Checks the shape at compile time; gives back what it got. */
export function definePlugin<Config extends TSchema>(plugin: Plugin<Config>): Plugin<Config> {
  return plugin
}

/** A value that control publishes, as this thread sees it. */
export interface ReplicaView<T> {
  readonly current: T
  /** 0 before the first publish. */
  readonly version: number
  /** Called after each swap, on this thread. */
  onChange(listener: (next: T) => void): void
}

/** An HTTP listener of a plugin's own, such as the simulated engine's. */
export interface ListenOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** What changes the port, for the message when it is taken, such as `plugins.sim.listen.port`. */
  readonly portSetting?: string
  /** Routes with `access: 'public'` only. */
  readonly routes: readonly RouteDefinition[]
  /** As `kernel.http.heartbeatMs`, which is the default. */
  readonly heartbeatMs?: number
  /** One thread only listens on the port. */
  readonly isAlone?: boolean
}

export interface Listener {
  readonly host: string
  readonly port: number
  close(): void
}

export interface Host {
  /** Name of the plugin that this host serves. */
  readonly plugin: string
  /** True on the thread that decides: commands, publishing, background work belong there. */
  readonly isControl: boolean
  /** True on threads that serve requests. With `threads: 0` one thread is both. */
  readonly isData: boolean
  /** 0 for control, 1-based for data threads; with `threads: 0` it is 0. */
  readonly threadIndex: number
  /** As it holds now: a reload puts another in its place. */
  readonly kernelConfig: KernelConfig
  readonly log: Logger
  readonly metrics: Metrics

  /** Adds a route; only in `register`. */
  route(definition: RouteDefinition): void
  /** Adds a WebSocket route; only in `register`. A path may have other routes beside it. */
  socket(definition: SocketRouteDefinition): void
  /** Every route declared so far by all plugins; complete from `start` on. */
  routes(): readonly RouteDefinition[]
  /** Adds a hook; only in `register`. */
  hook<Name extends HookName>(name: Name, hook: HookSignatures[Name], options?: HookOptions): HookSwitch
  /** A place for a value of this plugin on each request; only in `register`. */
  slot<T>(): RequestSlot<T>

  /** Only what the manifest `provides`. @throws BootError otherwise */
  provide<T>(token: Token<T>, service: T): void
  /** Only what the manifest `uses`. @throws BootError otherwise, and where its provider has none on this thread */
  use<T>(token: Token<T>): T
  /** Like `use`, undefined when nobody provides it on this thread; also for what the manifest `usesOptionally`. */
  find<T>(token: Token<T>): T | undefined

  /** Sends a request to control's handler; resolves with its result, rejects with its error. */
  command<Payload, Result>(token: CommandToken<Payload, Result>, payload: Payload): Promise<Result>
  /** The one handler of a command; kept on control only, ignored on other threads. */
  onCommand<Payload, Result>(
    token: CommandToken<Payload, Result>,
    handler: (payload: Payload) => Result | Promise<Result>,
  ): void
  replica<T>(token: ReplicaToken<T>): ReplicaView<T>
  /** Control only: swaps the value everywhere; resolves when every thread has acknowledged. */
  publish<T>(token: ReplicaToken<T>, next: T): Promise<void>

  /** Hints under a key, from any thread to all threads that subscribed to the key. */
  topic<Event>(token: TopicToken<Event>): Topic<Event>

  /**
   * Memory that all threads see, zeroed when new and kept when a data thread is replaced. The name is the plugin's own.
   * Ask in `register`, or later on any thread: a data thread that is the first to ask stands still until control has made
   * the block, about a millisecond. Use `Atomics` on it.
   *
   * @throws Error when the block has another size
   */
  shared(name: string, bytes: number): SharedArrayBuffer
  /**
   * One set of threads for all threads of the gateway: control's part in it runs the tasks, those of the others go there.
   * From `start` on; control must open it in its own. The plugin closes it.
   *
   * @param name tells the pools of the plugin from each other
   * @param threads how many it has
   * @param open makes the pool, on control
   */
  processPool(name: string, threads: number, open: () => TaskPool): TaskPool

  /**
   * Registers a load balancing policy; only in `register`. The setting `kernel.policy` and the label `policy` of workers
   * may name it.
   *
   * @param name one of the manifest's `policies`
   * @throws Error when it is not, or another plugin has it
   */
  policy(name: string, make: PolicyFactory, options?: PolicyOptions): void
  /** Puts something over each policy; only in `register`. */
  policyOverlay(overlay: PolicyOverlay): void

  /** Choosing workers, and their shared counters. */
  readonly balance: WorkerBalance
  /** Sending requests to workers. */
  readonly upstream: Upstream
  /** Registers a way to reach workers of one connection mode; only in `register`. */
  transport(transport: Transport): void
  /** Registers who looks after workers of one connection mode; only in `register`. */
  workerControl(control: ModeControl): void
  /** Registers how prefill/decode pairs of one connection mode work together; only in `register`. */
  pairs(strategy: PairStrategy): void
  /**
   * Runs work without a client as a request of its own; on data threads, from `ready` on.
   * @throws Error when the route is not declared, or this thread serves no requests
   */
  detached(work: DetachedWork): Detached
  /** Opens a listener of the plugin's own; from `start` on. Closed by the host at stop. */
  listen(options: ListenOptions): Promise<Listener>

  /** Adds a reason why the gateway is not ready; null when it is. Asked by readiness probes. */
  readiness(check: () => string | null): void
  /** The first reason given, `draining` before all others; null when ready. */
  readinessReason(): string | null
  /** True from the first shutdown signal on. */
  readonly isDraining: boolean

  /**
   * Begins the graceful end that SIGTERM begins: running requests may finish. More calls change nothing.
   * @param reason for the log
   */
  shutdown(reason: string): void
  /**
   * Reads the configuration anew, as SIGHUP does.
   * @throws reload_unavailable where the gateway was started without a way to, invalid_configuration with every problem;
   *   nothing has changed then
   */
  reload(): Promise<ReloadReport>
  /**
   * Counts work that goes on without a request; drain waits for it within the grace period. Work that can say how far it
   * came is given with `cancel`.
   */
  background(work: Promise<unknown> | BackgroundWork): void
  /** The metrics of all threads as they are now, added up; a thread that is silent for a second counts as last seen. */
  readMetrics(): Promise<MetricsSnapshot>
}
