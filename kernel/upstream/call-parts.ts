/** Parts of a thread that every call to a worker uses. */
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { Logger } from '../contracts/log.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import type { UpstreamLimits } from '../contracts/transport.ts'
import type { WorkerEntry, WorkerHttpPool } from '../contracts/worker.ts'
import type { MisconfiguredWorkers } from './misconfigured-workers.ts'
import type { OutgoingHeaders } from './outgoing.ts'
import type { ClientHeaders } from './response-headers.ts'
import type { RetryRules } from './retry.ts'
import type { Transports } from './transports.ts'

export interface CallParts {
  readonly balance: WorkerBalance
  readonly outgoing: OutgoingHeaders
  readonly clientHeaders: ClientHeaders
  readonly misconfigured: MisconfiguredWorkers
  readonly transports: Transports
  readonly limits: WorkerLimits
  readonly retry: RetryRules
  /** Null without a traffic observer; set before the first call. */
  traffic: TrafficWatch | null
  /** Token usage of relayed responses is counted. */
  countsUsage: boolean
  readonly log: Logger
}

/** Time limits of exchanges, by worker. */
export class WorkerLimits {
  readonly #kernel: UpstreamLimits
  /** Merged limits; entries of the worker table are immutable. */
  readonly #byOverride = new WeakMap<WorkerHttpPool, UpstreamLimits>()

  constructor(kernel: UpstreamLimits) {
    const { connectMs, firstByteMs, idleMs, requestMs } = kernel
    this.#kernel = { connectMs, firstByteMs, idleMs, requestMs }
  }

  of({ httpPool }: WorkerEntry): UpstreamLimits {
    if (httpPool === null) return this.#kernel
    let limits = this.#byOverride.get(httpPool)
    if (limits === undefined) {
      const { connectMs = this.#kernel.connectMs, requestMs = this.#kernel.requestMs } = httpPool
      limits = { ...this.#kernel, connectMs, requestMs }
      this.#byOverride.set(httpPool, limits)
    }
    return limits
  }

  /** Limit of all attempts together in milliseconds: the longer one of the kernel's and the worker's; 0 for none. */
  totalMs(worker: WorkerEntry | null): number {
    const kernelMs = this.#kernel.requestMs
    const ownMs = worker === null ? kernelMs : this.of(worker).requestMs
    return kernelMs === 0 || ownMs === 0 ? 0 : Math.max(kernelMs, ownMs)
  }

  /** Limits of a later attempt. @param usedMs time used by earlier attempts */
  after(worker: WorkerEntry, usedMs: number): UpstreamLimits {
    const limits = this.of(worker)
    const totalMs = this.totalMs(worker)
    if (totalMs === 0 || usedMs === 0) return limits
    const leftMs = Math.max(1, Math.round(totalMs - usedMs))
    return limits.requestMs <= leftMs ? limits : { ...limits, requestMs: leftMs }
  }
}
