/** Balancing for tests: a published table, and a balance with real metrics, its own memory and default breakers. */
import { Counters, createCounters } from '../../kernel/balance/counters.ts'
import { ThreadBalance, type ThreadBalanceOptions } from '../../kernel/balance/thread-balance.ts'
import type { BreakerConfig } from '../../kernel/config/breaker-config.ts'
import type { HookSignatures } from '../../kernel/contracts/hook.ts'
import type { RelayContext } from '../../kernel/contracts/relay-context.ts'
import type { WorkerEntry, WorkerTable } from '../../kernel/contracts/worker.ts'
import type { GatewayError } from '../../kernel/errors/gateway-error.ts'
import { NO_HOOKS } from '../../kernel/http/compiled-route.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { addPolicies, type PolicySettings } from './policies.ts'

export const defaultBreaker: BreakerConfig = {
  enabled: true,
  failureThreshold: 10,
  successThreshold: 3,
  openMs: 60_000,
  halfOpenProbes: 1,
  lastWorkerRequests: 8,
  maxOutlierShare: 0.5,
  stallMs: 20_000,
}

/**
 * Parts of a balance other than counters and table; there are no engine reports.
 *
 * @param memory shared by the balances that act as threads of one gateway
 */
export function balanceParts(memory = new SharedMemory()) {
  return {
    metrics: new ThreadMetrics(() => {}),
    shared: (name: string, bytes: number) => memory.block(name, bytes),
    loads: { current: { bySlot: [] } },
    breaker: defaultBreaker,
  }
}

/** A worker table as published by control. */
export class TestTable {
  current: WorkerTable = { workers: [] }
  private readonly listeners: ((next: WorkerTable) => void)[] = []

  onChange(listener: (next: WorkerTable) => void): void {
    this.listeners.push(listener)
  }

  publish(workers: readonly WorkerEntry[]): void {
    this.current = { workers }
    for (const listener of this.listeners) listener(this.current)
  }
}

/** A balance with the built-in policies. */
export function openBalance(options: ThreadBalanceOptions, settings: PolicySettings = {}): ThreadBalance {
  const balance = new ThreadBalance(options)
  const { shared, metrics, counters } = options
  addPolicies(balance.registry, { shared, metrics, maxWorkers: counters.maxWorkers }, settings)
  return balance
}

/** A balance on control, with the table it reads. */
export class TestBalance {
  readonly table = new TestTable()
  readonly balance: ThreadBalance

  constructor(options: Partial<ThreadBalanceOptions> = {}, settings: PolicySettings = {}) {
    const counters = new Counters(createCounters(64, 0), 0)
    const parts = { ...balanceParts(), counters, table: this.table, defaultPolicy: 'least_load' }
    this.balance = openBalance({ ...parts, ...options }, settings)
  }

  /** Publishes workers and makes them all ready. */
  register(...workers: WorkerEntry[]): void {
    this.table.publish(workers)
    for (const { slot } of workers) this.balance.setStatus(slot, 'ready')
  }
}

/** A request as passed to policies, on a route with an optional hook. */
export function pickContext(
  headers: Readonly<Record<string, string>> = {},
  onPick: HookSignatures['onPick'] | null = null,
): RelayContext {
  const hooks = { ...NO_HOOKS, onPick }
  const ctx = { rawBody: Buffer.from('{}'), header: (name: string) => headers[name], hooks }
  return ctx as unknown as RelayContext
}

export function errorOf(run: () => unknown): GatewayError {
  try {
    run()
  } catch (error) {
    return error as GatewayError
  }
  throw new Error('nothing was thrown')
}
