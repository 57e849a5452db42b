/** One thread with the policies of some plugins, registered by the real host over real shared memory, without a server. */
import { Counters, createCounters } from '../../kernel/balance/counters.ts'
import { ThreadBalance } from '../../kernel/balance/thread-balance.ts'
import type { KernelConfig } from '../../kernel/config/kernel-config.ts'
import type { Policy, PolicyParts } from '../../kernel/contracts/policy.ts'
import { type WorkerEntry, WorkerTableReplica } from '../../kernel/contracts/worker.ts'
import { createLogger } from '../../kernel/observe/log.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { BackgroundWorks } from '../../kernel/plugin/background-works.ts'
import { Declarations } from '../../kernel/plugin/declarations.ts'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { openReplica } from '../../kernel/plugin/plugin-host.ts'
import { PluginSet } from '../../kernel/plugin/plugin-set.ts'
import { ReadinessChecks } from '../../kernel/plugin/readiness-checks.ts'
import { Services } from '../../kernel/plugin/services.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { Topics, topicBytes } from '../../kernel/threads/topics.ts'
import type { ThreadUpstream } from '../../kernel/upstream/thread-upstream.ts'
import { resolvePluginConfig } from '../../plugins/cli/configuration/load-plugin.ts'
import { defaultBreaker } from './balance-parts.ts'

const MAX_WORKERS = 4_096
const STEP_MS = 1_000

export class PolicyHostThread {
  readonly metrics = new ThreadMetrics()
  readonly balance: ThreadBalance
  private readonly memory: SharedMemory
  private readonly link: ControlLink
  private readonly plugins: PluginSet

  constructor(plugins: readonly Plugin[], defaultPolicy?: string, memory = new SharedMemory()) {
    const log = createLogger({ level: 'silent', thread: 0 })
    const { metrics } = this
    this.memory = memory
    this.link = new ControlLink({ log, isData: true })
    this.balance = new ThreadBalance({
      counters: new Counters(createCounters(MAX_WORKERS, 0), 0),
      table: openReplica(this.link, WorkerTableReplica),
      defaultPolicy,
      breaker: defaultBreaker,
      metrics,
      shared: (name, bytes) => memory.block(name, bytes),
      loads: { current: { bySlot: [] } },
    })
    this.plugins = new PluginSet(plugins, STEP_MS, log)
    this.plugins.register(
      {
        link: this.link,
        declarations: new Declarations(),
        services: new Services([]),
        readiness: new ReadinessChecks(() => true),
        kernelConfig: () => ({ limits: { maxWorkers: MAX_WORKERS } }) as KernelConfig,
        log,
        metrics,
        balance: this.balance,
        policies: this.balance.registry,
        upstream: {} as ThreadUpstream,
        shared: memory,
        topics: new Topics({ memory: memory.block('topics', topicBytes(1)), threadIndex: 0, log }),
        background: new BackgroundWorks(metrics, log),
        detach: () => {
          throw new Error('nothing is served here')
        },
        listen: () => Promise.reject(new Error('nothing listens here')),
        isDraining: () => false,
      },
      ({ manifest: { name, config } }) => resolvePluginConfig(name, config, {}),
    )
    this.balance.checkPolicies()
  }

  /** Creates a new instance, as the first pick of a model does. */
  policy(name: string, given: Partial<PolicyParts> = {}): Policy {
    const { metrics, memory } = this
    const shared = (block: string, bytes: number) => memory.block(block, bytes)
    const parts: PolicyParts = { model: 'm', leg: 'whole', random: Math.random, metrics, shared }
    return this.balance.registry.make(name, { ...parts, ...given })
  }

  async ready(): Promise<void> {
    await this.plugins.start()
    await this.plugins.ready()
  }

  /** Publishes workers and makes them all ready. */
  async setWorkers(...workers: WorkerEntry[]): Promise<void> {
    await this.link.publish(WorkerTableReplica.name, { workers })
    for (const { slot } of workers) this.balance.setStatus(slot, 'ready')
  }

  async close(): Promise<void> {
    await this.plugins.stop()
    this.balance.close()
  }
}
