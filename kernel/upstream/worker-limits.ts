/** Time limits of exchanges: those of the worker, else of the model, else of the kernel. */
import type { KernelConfig } from '../config/kernel-config.ts'
import type { UpstreamLimits } from '../contracts/transport.ts'
import type { WorkerEntry, WorkerHttpPool } from '../contracts/worker.ts'

export type UpstreamTimes = Pick<
  KernelConfig['upstream'],
  'connectMs' | 'headMs' | 'firstTokenMs' | 'idleMs' | 'requestMs' | 'models'
>

/** Limits for whole responses and for streams. */
interface LimitPair {
  readonly whole: UpstreamLimits
  readonly stream: UpstreamLimits
  readonly times: Times
  /** Merged limits; entries of the worker table are immutable. */
  readonly byOverride: WeakMap<WorkerHttpPool, LimitPair>
}

export class WorkerLimits {
  readonly #requestMs: number
  readonly #kernel: LimitPair
  readonly #byModel: ReadonlyMap<string, LimitPair>

  constructor(times: UpstreamTimes) {
    this.#requestMs = times.requestMs
    this.#kernel = toPair(times)
    const models = Object.entries(times.models)
    this.#byModel = new Map(models.map(([model, own]) => [model, toPair({ ...times, ...own })]))
  }

  /** @param model canonical */
  of({ httpPool }: WorkerEntry, model: string, isStream: boolean): UpstreamLimits {
    const ofModel = this.#byModel.get(model) ?? this.#kernel
    let pair = ofModel
    if (httpPool !== null) {
      const merged = ofModel.byOverride.get(httpPool)
      pair = merged ?? toPair({ ...ofModel.times, ...someTimes(httpPool) })
      if (merged === undefined) ofModel.byOverride.set(httpPool, pair)
    }
    return isStream ? pair.stream : pair.whole
  }

  /** Limit of all attempts together in milliseconds: the longer one of the kernel's and the worker's; 0 for none. */
  totalMs(worker: WorkerEntry | null): number {
    const kernelMs = this.#requestMs
    const ownMs = worker?.httpPool?.requestMs ?? kernelMs
    return kernelMs === 0 || ownMs === 0 ? 0 : Math.max(kernelMs, ownMs)
  }

  /**
   * Limits of an attempt.
   *
   * @param model canonical
   * @param usedMs time used by earlier attempts
   */
  after(worker: WorkerEntry, model: string, isStream: boolean, usedMs: number): UpstreamLimits {
    const limits = this.of(worker, model, isStream)
    const totalMs = this.totalMs(worker)
    if (totalMs === 0 || usedMs === 0) return limits
    const leftMs = Math.max(1, Math.round(totalMs - usedMs))
    return limits.requestMs <= leftMs ? limits : { ...limits, requestMs: leftMs }
  }
}

type Times = Omit<UpstreamTimes, 'models'>

function toPair(times: Times): LimitPair {
  const { connectMs, headMs, firstTokenMs, idleMs, requestMs } = times
  const whole = { connectMs, headMs, firstTokenMs: 0, idleMs, requestMs }
  return { whole, stream: { ...whole, headMs: 0, firstTokenMs }, times, byOverride: new WeakMap() }
}

/** Without the members that are not set. */
function someTimes({ connectMs, headMs, firstTokenMs, requestMs }: WorkerHttpPool): Partial<Times> {
  return {
    ...(connectMs !== undefined && { connectMs }),
    ...(headMs !== undefined && { headMs }),
    ...(firstTokenMs !== undefined && { firstTokenMs }),
    ...(requestMs !== undefined && { requestMs }),
  }
}
