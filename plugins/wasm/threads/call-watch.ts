/** Watches one task of the pool and stops it when the running call exceeds its time limit. */
import type { TaskStop } from '#kernel'
import { sharedClockMs } from './guest-task.ts'

export interface CallLimits {
  /** Time limit of the running call, milliseconds; for progress 0, of the wait for the first call. */
  limitMs(progress: number): number
  /** Shortest limit of all calls, milliseconds: the interval of checks. */
  readonly shortestMs: number
}

interface CallWatchParts {
  /** Progress of all tasks. */
  readonly cells: Int32Array
  /** Index of this task in the cells. */
  readonly cell: number
  readonly stop: TaskStop
  readonly limits: CallLimits
  /** Additional wait for the first call while threads are starting, milliseconds. */
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
  /** Progress of the call that exceeded its limit, 0 for the wait before it; null if nothing was stopped. */
  expiredCall: number | null = null

  constructor({ cells, cell, stop, limits, graceMs }: CallWatchParts) {
    this.#cells = cells
    this.#cell = cell
    this.#stop = stop
    this.#limits = limits
    this.#graceMs = graceMs
    this.#timer = this.#checkAfter(limits.limitMs(0))
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #checkAfter(leftMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), Math.min(leftMs, this.#limits.shortestMs))
  }

  #check(): void {
    const progress = Atomics.load(this.#cells, this.#cell * 2)
    const limitMs = this.#limits.limitMs(progress)
    const nowMs = sharedClockMs()
    const ranMs = (nowMs - Atomics.load(this.#cells, this.#cell * 2 + 1)) | 0
    const leftMs = this.#leftMs(progress, limitMs, ranMs, (nowMs - this.#begunAtMs) | 0)
    if (leftMs > 0) {
      this.#timer = this.#checkAfter(leftMs)
      return
    }
    // A guest that had at most half of its time is not at fault: the wait was too long.
    this.expiredCall = progress > 0 && ranMs * 2 >= limitMs ? progress : 0
    this.#stop.stop()
  }

  /** The limit of the first call includes the wait for a thread, unless threads are starting. */
  #leftMs(progress: number, limitMs: number, ranMs: number, waitedMs: number): number {
    const graceMs = this.#graceMs()
    if (progress > 1 || (progress === 1 && graceMs > 0)) return limitMs - ranMs
    return limitMs + graceMs - waitedMs
  }
}
