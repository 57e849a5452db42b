/** Whether enough workers are ready for this gateway to serve. */
import type { WorkerBalance } from '#kernel'

/**
 * One ready regular worker is enough, or one of each where requests are split between prefill and decode.
 * @returns the reason why not, or null
 */
export function workersReadiness(balance: Pick<WorkerBalance, 'workers' | 'status'>): string | null {
  const hasReady = (type: string) =>
    balance.workers.some((worker) => worker.workerType === type && balance.status(worker.slot) === 'ready')
  const isReady = hasReady('regular') || (hasReady('prefill') && hasReady('decode'))
  return isReady ? null : 'insufficient healthy workers'
}
