/** The host of one plugin on one thread: the plugin's view of everything else. */
import type { PolicyRegistry } from '../balance/policy-registry.ts'
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
import type { PolicyFactory, PolicyOptions, PolicyOverlay, PolicyParts } from '../contracts/policy.ts'
import type { ConfigHistory, ReloadPlan, ReloadReport } from '../contracts/reload.ts'
import type { RequestFacts, RequestSlot } from '../contracts/request-facts.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import type { CommandToken, ReplicaToken, Token } from '../contracts/token.ts'
import type { Topic, TopicToken } from '../contracts/topic.ts'
import type { Transport } from '../contracts/transport.ts'
import type { ThreadLink } from '../threads/link.ts'
import type { SharedMemory } from '../threads/shared-memory.ts'
import type { Topics } from '../threads/topics.ts'
import type { ThreadUpstream } from '../upstream/thread-upstream.ts'
import type { BackgroundWorks } from './background-works.ts'
import type { Declarations } from './declarations.ts'
import type {
  Host,
  Listener,
  ListenOptions,
  Outage,
  PluginManifest,
  ReadinessOptions,
  ReplicaView,
} from './define-plugin.ts'
import {
  PlanReload,
  ReadConfigDigests,
  ReadConfigHistory,
  ReadMetrics,
  ReloadConfig,
  RequestShutdown,
} from './kernel-commands.ts'
import type { ReadinessChecks } from './readiness-checks.ts'
import type { Services } from './services.ts'

/** Shared by the hosts of all plugins of a thread. */
export interface HostParts {
  readonly link: ThreadLink
  readonly declarations: Declarations
  readonly services: Services
  readonly readiness: ReadinessChecks
  kernelConfig(): KernelConfig
  readonly log: Logger
  readonly metrics: Metrics
  readonly balance: WorkerBalance
  readonly policies: PolicyRegistry
  readonly upstream: ThreadUpstream
  readonly shared: SharedMemory
  readonly topics: Topics
  readonly background: BackgroundWorks
  detach(work: DetachedWork): Detached
  listen(plugin: string, options: ListenOptions): Promise<Listener>
  isDraining(): boolean
}

/** The slots of a request context, which are not part of its public type. */
interface SlottedContext {
  slots: unknown[] | null
}

export class PluginHost implements Host {
  readonly plugin: string
  readonly log: Logger
  readonly #manifest: PluginManifest
  readonly #parts: HostParts

  constructor(manifest: PluginManifest, parts: HostParts) {
    this.plugin = manifest.name
    this.log = parts.log.child({ plugin: manifest.name })
    this.#manifest = manifest
    this.#parts = parts
  }

  get isControl(): boolean {
    return this.#parts.link.isControl
  }

  get isData(): boolean {
    return this.#parts.link.isData
  }

  get threadIndex(): number {
    return this.#parts.link.index
  }

  get kernelConfig(): KernelConfig {
    return this.#parts.kernelConfig()
  }

  get metrics(): Metrics {
    return this.#parts.metrics
  }

  get balance(): WorkerBalance {
    return this.#parts.balance
  }

  get upstream(): ThreadUpstream {
    return this.#parts.upstream
  }

  get isDraining(): boolean {
    return this.#parts.isDraining()
  }

  route(definition: RouteDefinition): void {
    this.#parts.declarations.addRoute(this.plugin, definition)
  }

  socket(definition: SocketRouteDefinition): void {
    this.#parts.declarations.addSocket(this.plugin, definition)
  }

  routes(): readonly RouteDefinition[] {
    return this.#parts.declarations.routes.map((route) => route.definition)
  }

  hook<Name extends HookName>(name: Name, hook: HookSignatures[Name], options: HookOptions = {}): HookSwitch {
    return this.#parts.declarations.addHook(this.plugin, name, hook, options)
  }

  slot<T>(): RequestSlot<T> {
    const index = this.#parts.declarations.addSlot(this.plugin)
    return {
      get: (ctx) => slotsOf(ctx).slots?.[index] as T | undefined,
      set: (ctx, value) => {
        const slotted = slotsOf(ctx)
        slotted.slots ??= []
        slotted.slots[index] = value
      },
    }
  }

  provide<T>(token: Token<T>, service: T): void {
    this.#parts.services.provide(this.#manifest, token, service)
  }

  use<T>(token: Token<T>): T {
    return this.#parts.services.use(this.#manifest, token)
  }

  find<T>(token: Token<T>): T | undefined {
    return this.#parts.services.find(this.#manifest, token)
  }

  reportOutages<T>(token: Token<T>, check: () => string | null): void {
    this.#parts.services.reportOutages(this.#manifest, token, check)
  }

  outage<T>(token: Token<T>): string | null {
    return this.#parts.services.outage(token)
  }

  outages(): readonly Outage[] {
    return this.#parts.services.outages()
  }

  dependentsOf<T>(token: Token<T>): readonly string[] {
    return this.#parts.services.dependentsOf(token)
  }

  command<Payload, Result>(token: CommandToken<Payload, Result>, payload: Payload): Promise<Result> {
    return this.#parts.link.command(token.name, payload) as Promise<Result>
  }

  onCommand<Payload, Result>(
    token: CommandToken<Payload, Result>,
    handler: (payload: Payload) => Result | Promise<Result>,
  ): void {
    this.#parts.link.onCommand(token.name, handler as (payload: unknown) => unknown)
  }

  replica<T>(token: ReplicaToken<T>): ReplicaView<T> {
    return openReplica(this.#parts.link, token)
  }

  publish<T>(token: ReplicaToken<T>, next: T): Promise<void> {
    return this.#parts.link.publish(token.name, next)
  }

  topic<Event>(token: TopicToken<Event>): Topic<Event> {
    return this.#parts.topics.topic(token)
  }

  shared(name: string, bytes: number): SharedArrayBuffer {
    return this.#parts.shared.block(`${this.plugin}.${name}`, bytes)
  }

  shutdown(reason: string): void {
    this.command(RequestShutdown, { plugin: this.plugin, reason }).catch((err: unknown) =>
      this.log.error({ err }, 'shutdown request failed'),
    )
  }

  reload(): Promise<ReloadReport> {
    return this.command(ReloadConfig, null)
  }

  planReload(text: string | null): Promise<ReloadPlan> {
    return this.command(PlanReload, text)
  }

  configDigests(key: Buffer): Promise<Readonly<Record<string, string>>> {
    return this.command(ReadConfigDigests, key.toString('base64'))
  }

  configHistory(): Promise<ConfigHistory> {
    return this.command(ReadConfigHistory, null)
  }

  background(work: Promise<unknown> | BackgroundWork): void {
    this.#parts.background.add(this.plugin, work)
  }

  readMetrics(): Promise<MetricsSnapshot> {
    return this.command(ReadMetrics, null)
  }

  processPool(name: string, threads: number, open: () => TaskPool): TaskPool {
    return this.#parts.link.processPool(`${this.plugin}.${name}`, threads, open)
  }

  policy(name: string, make: PolicyFactory, options?: PolicyOptions): void {
    if (this.#manifest.policies?.includes(name) !== true)
      throw new Error(
        `policy '${name}' is not listed under policies in the manifest of plugin ${this.plugin}`,
      )
    this.#parts.policies.register(name, (parts) => make(this.#own(parts)), options)
  }

  policyOverlay(overlay: PolicyOverlay): void {
    this.#parts.policies.addOverlay((policy, parts) => overlay(policy, this.#own(parts)))
  }

  transport(transport: Transport): void {
    this.#parts.upstream.transports.add(transport)
  }

  workerControl(control: ModeControl): void {
    this.#parts.upstream.transports.addControl(control)
  }

  pairs(strategy: PairStrategy): void {
    this.#parts.upstream.transports.addPairs(strategy)
  }

  detached(work: DetachedWork): Detached {
    return this.#parts.detach(work)
  }

  listen(options: ListenOptions): Promise<Listener> {
    return this.#parts.listen(this.plugin, options)
  }

  readiness(check: () => string | null, options: ReadinessOptions = {}): void {
    this.#parts.readiness.add(check, options.isStartup ?? false)
  }

  readinessReason(): string | null {
    return this.isDraining ? 'draining' : this.#parts.readiness.reason()
  }

  missingAtStartup(): readonly string[] {
    return this.#parts.readiness.missing()
  }

  /** Shared memory is named per plugin, and log lines carry the plugin's name. */
  #own(parts: PolicyParts): PolicyParts {
    return { ...parts, shared: (name, bytes) => this.shared(name, bytes), log: this.log }
  }
}

/** The read side of a replica. */
export function openReplica<T>(link: ThreadLink, token: ReplicaToken<T>): ReplicaView<T> {
  const cell = link.replica(token.name, token.initial)
  return {
    get current() {
      return cell.current as T
    },
    get version() {
      return cell.version
    },
    onChange: (listener) => {
      // Publications do not wait for listeners of plugins.
      cell.listeners.push((next) => void listener(next as T))
    },
  }
}

function slotsOf(ctx: RequestFacts): SlottedContext {
  return ctx as unknown as SlottedContext
}
