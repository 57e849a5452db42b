/** Watches one task of the pool, and stops it when the call that runs in it has taken too long. */
import type { TaskStop } from '#kernel'
import { type LoadedModule, sharedClockMs } from './guest-task.ts'

export interface CallLimits {
  /** Limit of the call that runs, milliseconds; of progress 0, the wait for the first call. */
  limitMs(progress: number): number
  /** The shortest limit of all calls, milliseconds: any of them may run by the next look. */
  readonly shortestMs: number
}

/** Of the limits of these modules' calls. */
export function shortestOf(modules: readonly Pick<LoadedModule, 'timeoutMs'>[]): number {
  let shortestMs = Number.POSITIVE_INFINITY
  for (const { timeoutMs } of modules) shortestMs = Math.min(shortestMs, timeoutMs)
  return shortestMs
}

export interface CallWatchParts {
  /** Progress of all tasks. */
  readonly cells: Int32Array
  /** Place of this task in them. */
  readonly cell: number
  readonly stop: TaskStop
  readonly limits: CallLimits
  /** More time for the first call to begin, milliseconds: while threads are starting. */
  graceMs(): number
}

export class CallWatch {
  readonly #cells: Int32Array
  readonly #cell: number
  readonly #stop: TaskStop
  readonly #limits: CallLimits
  readonly #graceMs: () => number
  readonly #begunAtMs = sharedClockMs()
  #timer: NodeJS.Timeout
  /** The call that took too long, 0 when it was the wait before it; null while nothing was stopped. */
  expiredCall: number | null = null

  constructor({ cells, cell, stop, limits, graceMs }: CallWatchParts) {
    this.#cells = cells
    this.#cell = cell
    this.#stop = stop
    this.#limits = limits
    this.#graceMs = graceMs
    this.#timer = this.#lookAfter(limits.limitMs(0))
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #lookAfter(leftMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), Math.min(leftMs, this.#limits.shortestMs))
  }

  #look(): void {
    const progress = Atomics.load(this.#cells, this.#cell * 2)
    const limitMs = this.#limits.limitMs(progress)
    const nowMs = sharedClockMs()
    const ranMs = (nowMs - Atomics.load(this.#cells, this.#cell * 2 + 1)) | 0
    const leftMs = this.#leftMs(progress, limitMs, ranMs, (nowMs - this.#begunAtMs) | 0)
    if (leftMs > 0) {
      this.#timer = this.#lookAfter(leftMs)
      return
    }
    // A guest that had no more than half of its time is not to blame: the wait was too long.
    this.expiredCall = progress > 0 && ranMs * 2 >= limitMs ? progress : 0
    this.#stop.stop()
  }

  /** The first call's limit begins when the task is handed over, unless the threads are only starting. */
  #leftMs(progress: number, limitMs: number, ranMs: number, waitedMs: number): number {
    const graceMs = this.#graceMs()
    if (progress > 1 || (progress === 1 && graceMs > 0)) return limitMs - ranMs
    return limitMs + graceMs - waitedMs
  }
}
