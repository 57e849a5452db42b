/** The host of one plugin on one thread: the plugin's view of everything else. */
import type { PolicyRegistry } from '../balance/policy-registry.ts'
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { Detached, DetachedWork } from '../contracts/detached.ts'
import type { Logger } from '../contracts/log.ts'
import type { Metrics } from '../contracts/metric.ts'
import type { PolicyParts } from '../contracts/policy.ts'
import type { RequestFacts } from '../contracts/request-facts.ts'
import type { ReplicaToken } from '../contracts/token.ts'
import type { ThreadLink } from '../threads/link.ts'
import type { SharedMemory } from '../threads/shared-memory.ts'
import type { Topics } from '../threads/topics.ts'
import type { ThreadUpstream } from '../upstream/thread-upstream.ts'
import type { BackgroundWorks } from './background-works.ts'
import type { Declarations } from './declarations.ts'
import type { Host, Listener, ListenOptions, PluginManifest, ReplicaView } from './define-plugin.ts'
import {
  PlanReload,
  ReadConfigDigests,
  ReadMetrics,
  ReloadConfig,
  RequestShutdown,
  ShowConfig,
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

export function openHost(manifest: PluginManifest, parts: HostParts): Host {
  const { declarations, services, readiness, link, policies } = parts
  const { name: plugin } = manifest
  const log = parts.log.child({ plugin })
  const shared: Host['shared'] = (name, bytes) => parts.shared.block(`${plugin}.${name}`, bytes)
  /** Shared memory is named per plugin, and log lines carry the plugin's name. */
  const own = (ofPolicy: PolicyParts): PolicyParts => ({ ...ofPolicy, shared, log })
  const command: Host['command'] = (token, payload) => link.command(token.name, payload) as Promise<never>
  return {
    plugin,
    isControl: link.isControl,
    isData: link.isData,
    threadIndex: link.index,
    log,
    metrics: parts.metrics,
    balance: parts.balance,
    upstream: parts.upstream,
    get kernelConfig() {
      return parts.kernelConfig()
    },
    get isDraining() {
      return parts.isDraining()
    },

    route: (definition) => declarations.addRoute(plugin, definition),
    socket: (definition) => declarations.addSocket(plugin, definition),
    routes: () => declarations.routes.map((route) => route.definition),
    hook: (name, hook, options = {}) => declarations.addHook(plugin, name, hook, options),
    slot<T>() {
      const index = declarations.addSlot(plugin)
      return {
        get: (ctx) => slotsOf(ctx).slots?.[index] as T | undefined,
        set: (ctx, value: T) => {
          const slotted = slotsOf(ctx)
          slotted.slots ??= []
          slotted.slots[index] = value
        },
      }
    },

    provide: (token, service) => services.provide(manifest, token, service),
    use: (token) => services.use(manifest, token),
    find: (token) => services.find(manifest, token),
    reportOutages: (token, check) => services.reportOutages(manifest, token, check),
    outage: (token) => services.outage(token),
    outages: () => services.outages(),
    dependentsOf: (token) => services.dependentsOf(token),

    command,
    onCommand: (token, handler) => link.onCommand(token.name, handler as (payload: unknown) => unknown),
    replica: (token) => openReplica(link, token),
    publish: (token, next) => link.publish(token.name, next),
    topic: (token) => parts.topics.topic(token),
    shared,
    processPool: (name, threads, open) => link.processPool(`${plugin}.${name}`, threads, open),

    policy(name, make, options) {
      if (manifest.policies?.includes(name) !== true)
        throw new Error(`policy '${name}' is not listed under policies in the manifest of plugin ${plugin}`)
      policies.register(name, (ofPolicy) => make(own(ofPolicy)), options)
    },
    policyOverlay: (overlay) => policies.addOverlay((policy, ofPolicy) => overlay(policy, own(ofPolicy))),

    transport: (transport) => parts.upstream.transports.add(transport),
    workerControl: (control) => parts.upstream.transports.addControl(control),
    pairs: (strategy) => parts.upstream.transports.addPairs(strategy),
    detached: parts.detach,
    listen: (options) => parts.listen(plugin, options),

    readiness: (check, { isStartup = false } = {}) => readiness.add(check, isStartup),
    startupWarning: (check) => readiness.addWarning(check),
    readinessReason: () => (parts.isDraining() ? 'draining' : readiness.reason()),
    missingAtStartup: () => readiness.missing(),

    shutdown: (reason) => {
      command(RequestShutdown, { plugin, reason }).catch((err: unknown) =>
        log.error({ err }, 'shutdown request failed'),
      )
    },
    reload: () => command(ReloadConfig, null),
    planReload: (text) => command(PlanReload, text),
    configDigests: (key) => command(ReadConfigDigests, key.toString('base64')),
    background: (work) => parts.background.add(plugin, work),
    showConfig: () => command(ShowConfig, null),
    readMetrics: (families = null) => command(ReadMetrics, families),
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
