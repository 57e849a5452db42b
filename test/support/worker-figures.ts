/** Figures of a worker without attempts. */
import type { WorkerFigures } from '../../kernel/balance/worker-balance.ts'

export function workerFigures(figures: Partial<WorkerFigures> = {}): WorkerFigures {
  return {
    attempts: 0,
    failures: { answered: 0, silent: 0, unreachable: 0 },
    durationMs: null,
    firstByteMs: null,
    failureShare: 0,
    isStalled: false,
    lastError: null,
    ...figures,
  }
}
