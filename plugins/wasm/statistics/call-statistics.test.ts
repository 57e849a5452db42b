import { expect, test, vi } from 'vitest'
import type { LoadedModule } from '../threads/guest-task.ts'
import { Placements } from '../threads/placements.ts'
import { CallStatistics } from './call-statistics.ts'
import type { ModuleMetrics } from './module-metrics.ts'
import { ModuleStats } from './module-stats.ts'

test('a call whose thread ended is not counted with its full time limit', () => {
  const stats = new ModuleStats(new SharedArrayBuffer(ModuleStats.bytes(1, 1)), 1, 0, {
    failures: 9,
    coolOffMs: 1_000,
  })
  stats.begin(0, 1n)
  const metrics = { executed: vi.fn() } as unknown as ModuleMetrics
  const log = { warn: vi.fn(), error: vi.fn() } as never
  const placements = new Placements(1_000)
  const statistics = new CallStatistics({ stats, metrics, log, placements, keep: () => {} })
  const module = { uuid: 'u', name: 'n', row: 0, timeoutMs: 2_000 } as LoadedModule
  const call = { module, point: 'OnRequest', requestId: 'r' } as const
  statistics.lost(call, 'crashed')
  expect(stats.totals()).toMatchObject({ failed: 1, maxTimeUs: 0 })
  statistics.lost(call, 'timeout')
  expect(stats.totals()).toMatchObject({ failed: 2, maxTimeUs: 2_000_000 })
})
