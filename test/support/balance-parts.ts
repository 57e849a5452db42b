/** What a balance needs besides its table, for tests: real metrics, memory of its own, no engine reports, breakers as by default. */
import type { BreakerConfig } from '../../kernel/config/breaker-config.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'

const breaker: BreakerConfig = {
  enabled: true,
  failureThreshold: 10,
  successThreshold: 3,
  openMs: 60_000,
  halfOpenProbes: 1,
}

/** @param memory shared by the balances of one test that stand for threads of one gateway */
export function balanceParts(memory = new SharedMemory()) {
  return {
    metrics: new ThreadMetrics(() => {}),
    shared: (name: string, bytes: number) => memory.block(name, bytes),
    loads: { current: { bySlot: [] } },
    breaker,
  }
}
