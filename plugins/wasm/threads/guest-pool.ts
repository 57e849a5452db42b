/** The pool of guest threads: runs tasks, enforces the deadline of each call, and reports which call ended a thread. */
import { type Host, type Logger, moduleFile, TaskFailure, type TaskPool, TaskStop } from '#kernel'
import { openTaskPool } from '#shared'
import type { WasmConfig } from '../config.ts'
import { SHORT_WAIT_MS } from '../instances/shared-lock.ts'
import { SharedState } from '../instances/shared-state.ts'
import { StoredState } from '../instances/stored-state.ts'
import {
  type GuestTask,
  type GuestTaskResult,
  type GuestThreadData,
  type LoadedModule,
  sharedClockMs,
} from './guest-task.ts'

/** Additional wait for threads that are starting, milliseconds. */
export const START_GRACE_MS = 5_000

/** Delay before the cell of a terminated task is reused, milliseconds. */
const CELL_REST_MS = 1_000

/** An owner number that no thread has. */
const NO_OWNER = -2

/** How a task ended. `progress` identifies the running call; 0 if no call had begun. */
export type TaskEnd =
  | { readonly kind: 'result'; readonly result: Exclude<GuestTaskResult, { kind: 'missing' }> }
  | { readonly kind: 'timeout' | 'crashed'; readonly progress: number }
  /** No call was made: the queue is full or the gateway is stopping. */
  | { readonly kind: 'refused' }

/** A task without the members that the pool adds. */
type TaskDraft = GuestTask extends infer Task
  ? Task extends GuestTask
    ? Omit<Task, 'cell' | 'modules' | 'live'>
    : never
  : never

interface CallLimits {
  /** Time limit of the running call, milliseconds; for progress 0, of the wait for the first call. */
  limitMs(progress: number): number
  /** Shortest limit of all calls, milliseconds: the interval of checks. */
  readonly shortestMs: number
}

export interface TaskRequest extends CallLimits {
  readonly modules: readonly LoadedModule[]
  /** Creates the task and the buffers to transfer, for each attempt. */
  draft(): { task: TaskDraft; transfer: ArrayBuffer[] }
}

interface GuestPoolOptions {
  readonly host: Host
  readonly config: WasmConfig
  readonly state: SharedArrayBuffer
  /** Registered modules. */
  readonly live: () => readonly LoadedModule[]
}

export class GuestPool {
  readonly #options: GuestPoolOptions
  readonly #log: Logger
  readonly #cells: Int32Array
  readonly #cellMemory: SharedArrayBuffer
  readonly #freeCells: number[]
  readonly #state: SharedState
  #pool: TaskPool | null = null
  /** A thread has completed a task since the last start of a thread. */
  #isWarm = false
  #hasEnded = false

  constructor(options: GuestPoolOptions) {
    const { host, config, state } = options
    this.#options = options
    this.#log = host.log
    const cells = config.poolThreads + config.queueLimit
    this.#cellMemory = new SharedArrayBuffer(cells * 8)
    this.#cells = new Int32Array(this.#cellMemory)
    this.#freeCells = Array.from({ length: cells }, (_, index) => index)
    this.#state = new SharedState(state, NO_OWNER)
  }

  /** No thread has completed a task since the start: waits are extended. */
  get isStarting(): boolean {
    return !this.#isWarm
  }

  /** Starts the threads if they are not running. */
  open(): TaskPool {
    if (this.#pool !== null) return this.#pool
    const { host, config, state } = this.#options
    const data: GuestThreadData = {
      cells: this.#cellMemory,
      state,
      reuseCalls: config.reuseCalls,
      logLevel: host.kernelConfig.log.level,
    }
    this.#isWarm = false
    this.#pool = openTaskPool(host, {
      file: moduleFile('plugins/wasm/threads/guest-thread'),
      threads: config.poolThreads,
      queueLimit: config.queueLimit,
      workerData: data,
      heapMiB: config.heapMiB,
      stackMiB: config.stackMiB,
      onThreadEnd: (threadId) => this.#releaseDead(threadId),
    })
    return this.#pool
  }

  #releaseDead(threadId: number): void {
    this.#state.releaseDead(threadId)
    for (const { stored } of this.#options.live())
      if (stored !== null) new StoredState(stored, NO_OWNER, SHORT_WAIT_MS).releaseDead(threadId)
  }

  /** Closes the pool and refuses later tasks. */
  end(): Promise<void> {
    this.#hasEnded = true
    return this.close()
  }

  /** Stops the threads; the next task starts new ones. */
  async close(): Promise<void> {
    const pool = this.#pool
    this.#pool = null
    await pool?.close()
  }

  /** Runs one task, and sends the modules if the thread does not have them. Never rejects. */
  async run(request: TaskRequest): Promise<TaskEnd> {
    try {
      const first = await this.#attempt(request, false)
      return first ?? (await this.#attempt(request, true)) ?? { kind: 'refused' }
    } catch (err) {
      // Requests follow the failure policy of their modules.
      this.#log.error({ err }, 'wasm guest threads cannot start')
      return { kind: 'refused' }
    }
  }

  /** @returns null if the thread does not have all modules */
  async #attempt(request: TaskRequest, withModules: boolean): Promise<TaskEnd | null> {
    const cell = this.#freeCells.pop()
    if (cell === undefined || this.#hasEnded) return { kind: 'refused' }
    const pool = this.open()
    Atomics.store(this.#cells, cell * 2, 0)
    Atomics.store(this.#cells, cell * 2 + 1, sharedClockMs())
    const { task: draft, transfer } = request.draft()
    const { live } = this.#options
    const task: GuestTask = {
      ...draft,
      cell,
      modules: withModules ? request.modules : null,
      live: withModules ? live().map(({ uuid }) => uuid) : null,
    }
    const stop = new TaskStop()
    const watch = new CallWatch({
      cells: this.#cells,
      cell,
      stop,
      limits: request,
      graceMs: () => (this.#isWarm ? 0 : START_GRACE_MS),
    })
    try {
      const result = await pool.run<GuestTaskResult>(task, { transfer, stop })
      this.#isWarm = true
      return result.kind === 'missing' ? null : { kind: 'result', result }
    } catch (error) {
      return this.#toEnd(error, watch.expiredCall ?? Atomics.load(this.#cells, cell * 2))
    } finally {
      watch.end()
      this.#freeCell(cell, stop.aborted)
    }
  }

  /** A thread that is being terminated may still write to its cell. */
  #freeCell(cell: number, mayBeWritten: boolean): void {
    if (mayBeWritten) setTimeout(() => this.#freeCells.push(cell), CELL_REST_MS).unref()
    else this.#freeCells.push(cell)
  }

  #toEnd(error: unknown, progress: number): TaskEnd {
    const kind = error instanceof TaskFailure ? error.kind : 'crashed'
    // The thread is being replaced, which may take longer than a call.
    if (kind === 'crashed' || (kind === 'stopped' && progress > 0)) this.#isWarm = false
    if (kind === 'stopped') return { kind: 'timeout', progress }
    if (kind === 'full' || kind === 'closed') return { kind: 'refused' }
    this.#log.warn({ err: error }, 'wasm guest thread exited')
    return { kind: 'crashed', progress }
  }
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

/** Watches one task and stops it when the running call exceeds its time limit. */
class CallWatch {
  readonly #parts: CallWatchParts
  readonly #begunAtMs = sharedClockMs()
  #timer: NodeJS.Timeout
  /** Progress of the call that exceeded its limit, 0 for the wait before it; null if nothing was stopped. */
  expiredCall: number | null = null

  constructor(parts: CallWatchParts) {
    this.#parts = parts
    this.#timer = this.#checkAfter(parts.limits.limitMs(0))
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #checkAfter(leftMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), Math.min(leftMs, this.#parts.limits.shortestMs))
  }

  #check(): void {
    const { cells, cell, limits, stop } = this.#parts
    const progress = Atomics.load(cells, cell * 2)
    const limitMs = limits.limitMs(progress)
    const nowMs = sharedClockMs()
    const ranMs = (nowMs - Atomics.load(cells, cell * 2 + 1)) | 0
    const leftMs = this.#leftMs(progress, limitMs, ranMs, (nowMs - this.#begunAtMs) | 0)
    if (leftMs > 0) {
      this.#timer = this.#checkAfter(leftMs)
      return
    }
    // A guest that had at most half of its time is not at fault: the wait was too long.
    this.expiredCall = progress > 0 && ranMs * 2 >= limitMs ? progress : 0
    stop.stop()
  }

  /** The limit of the first call includes the wait for a thread, unless threads are starting. */
  #leftMs(progress: number, limitMs: number, ranMs: number, waitedMs: number): number {
    const graceMs = this.#parts.graceMs()
    if (progress > 1 || (progress === 1 && graceMs > 0)) return limitMs - ranMs
    return limitMs + graceMs - waitedMs
  }
}
