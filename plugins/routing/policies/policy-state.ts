/** State of the policies on one thread: views of the memory that all threads share, and the sweeps over it. */
import type { Metrics, PolicyParts, WorkerEntry } from '#kernel'
import type { PoliciesConfig } from './config.ts'
import { KvIndexes } from './kv-index/kv-block-index.ts'
import type { NoteRings } from './notes/note-ring.ts'
import { NotingPrefixTable, NotingSessions } from './notes/noting-tables.ts'
import { beginPrefixSweep } from './prefixes/prefix-sweep.ts'
import { PrefixTable } from './prefixes/prefix-table.ts'
import { StickySessions } from './sessions/sticky-sessions.ts'
import { SlicedSweep } from './sliced-sweep.ts'
import { WorkerCounters } from './worker-counters.ts'

export interface PolicyStateOptions {
  readonly config: PoliciesConfig
  readonly shared: PolicyParts['shared']
  /** Set on control, which reports gauges for all threads; null on other threads. */
  readonly metrics: Metrics | null
  /** Rows of the worker counters. */
  readonly maxWorkers: number
  /** Rings for notes to other gateways; absent on control and without a mesh. */
  readonly rings?: NoteRings
}

export class PolicyState {
  readonly config: PoliciesConfig
  readonly counters: WorkerCounters
  readonly prefixes: PrefixTable
  readonly sessions: StickySessions
  readonly kvIndexes = new KvIndexes()
  /** Open while a cache_aware instance exists. */
  readonly prefixSweep: SlicedSweep

  constructor({ config, shared, metrics, maxWorkers, rings }: PolicyStateOptions) {
    const { maxBytes, evictionIntervalSecs } = config.cacheAware
    const { maxSessions, sweepIntervalSecs } = config.manual
    this.config = config
    const counters = new WorkerCounters(shared, maxWorkers)
    const table =
      rings?.prefixes == null
        ? new PrefixTable(shared, maxBytes, counters)
        : new NotingPrefixTable(shared, maxBytes, counters, rings.prefixes)
    this.counters = counters
    this.prefixes = table
    const options = { shared, metrics, counters, maxSessions, settings: config.manual, sweepIntervalSecs }
    this.sessions =
      rings?.sessions == null ? new StickySessions(options) : new NotingSessions(options, rings.sessions)
    const intervalMs = evictionIntervalSecs * 1000
    this.prefixSweep = new SlicedSweep(intervalMs, () =>
      beginPrefixSweep({
        table,
        counters,
        maxWorkers,
        maxPerWorker: config.cacheAware.maxTreeSize,
        intervalMs,
      }),
    )
  }

  /** Declares the gauge of sessions per worker; call on control only. Series of removed workers are deleted. */
  declareRoutingKeyGauge(metrics: Metrics, workers: () => readonly WorkerEntry[]): void {
    const { counters } = this
    const family = metrics.gauge({
      name: 'weir_worker_routing_keys_active',
      help: 'Sticky sessions assigned to the worker.',
      labels: ['worker'],
    })
    let shown = new Set<string>()
    metrics.onCollect(() => {
      const listed = workers()
      const urls = new Set(listed.map(({ url }) => url))
      for (const url of shown) if (!urls.has(url)) family.remove(url)
      for (const url of urls) family.labels(url).value = 0
      for (const worker of listed) {
        // Resets the count if another worker had the slot before.
        counters.tagOf(worker)
        family.labels(worker.url).value += counters.sessions(worker.slot)
      }
      shown = urls
    })
  }
}
