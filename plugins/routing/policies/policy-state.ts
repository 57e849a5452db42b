/** What the policies of one thread have in common: views of the memory that all threads share, and the sweeps over it. */

import type { Metrics, PolicyParts, WorkerEntry } from '#kernel'
import type { CacheAwareParts } from './cache-aware.ts'
import type { PoliciesConfig } from './config.ts'
import { KvIndexes } from './kv-index/kv-indexes.ts'
import { beginPrefixSweep } from './prefix-sweep.ts'
import { PrefixTable } from './prefix-table.ts'
import { SlotLedger } from './slot-ledger.ts'
import { StickySessions } from './sticky-sessions.ts'
import { SlicedSweep } from './time-slices.ts'

export interface PolicyStateOptions {
  readonly config: PoliciesConfig
  readonly shared: PolicyParts['shared']
  /** Of control, which tells what all threads share; null elsewhere. */
  readonly metrics: Metrics | null
  /** Rows of the worker counters. */
  readonly maxWorkers: number
}

export class PolicyState {
  readonly config: PoliciesConfig
  readonly ledger: SlotLedger
  readonly prefixes: PrefixTable
  readonly sessions: StickySessions
  readonly kvIndexes = new KvIndexes()
  private readonly prefixSweep: SlicedSweep

  constructor({ config, shared, metrics, maxWorkers }: PolicyStateOptions) {
    const { maxBytes, evictionIntervalSecs } = config.cacheAware
    const { maxSessions, sweepIntervalSecs } = config.manual
    this.config = config
    const ledger = new SlotLedger(shared, maxWorkers)
    const table = new PrefixTable(shared, maxBytes, ledger)
    this.ledger = ledger
    this.prefixes = table
    this.sessions = new StickySessions({
      shared,
      metrics,
      ledger,
      maxSessions,
      settings: config.manual,
      sweepIntervalSecs,
    })
    const intervalMs = evictionIntervalSecs * 1000
    this.prefixSweep = new SlicedSweep(intervalMs, () =>
      beginPrefixSweep({
        table,
        ledger,
        maxWorkers,
        maxPerWorker: config.cacheAware.maxTreeSize,
        intervalMs,
      }),
    )
  }

  /** Sessions that stick to the worker, for gauges. Naming it clears the count of one that had its slot before. */
  routingKeys(worker: WorkerEntry): number {
    this.ledger.tagOf(worker)
    return this.ledger.sessions(worker.slot)
  }

  /** For one instance of cache_aware: sweeps run while there is any. */
  cacheAwareParts({ metrics, leg }: PolicyParts): CacheAwareParts {
    this.prefixSweep.open()
    const { prefixes: table, ledger, kvIndexes } = this
    return { metrics, leg, table, ledger, kvIndexes, onClose: () => this.prefixSweep.close() }
  }
}
