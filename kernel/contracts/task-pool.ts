/** The task pool contract: work that runs on threads of its own, and its cancellation. */

/** Reason of a failed task: full queue, stopped by its caller, dead thread, or closed pool. */
export type TaskFailureKind = 'full' | 'stopped' | 'crashed' | 'closed'

export class TaskFailure extends Error {
  readonly kind: TaskFailureKind
  constructor(kind: TaskFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'TaskFailure'
    this.kind = kind
  }
}

/** Stops one task; an AbortController costs ten times as much. */
export class TaskStop {
  aborted = false
  #listener: (() => void) | null = null

  stop(): void {
    if (this.aborted) return
    this.aborted = true
    this.#listener?.()
  }

  /** Called by the pool. */
  once(_event: 'abort', listener: () => void): void {
    this.#listener = listener
  }

  /** Called by the pool. */
  removeListener(): void {
    this.#listener = null
  }
}

export interface TaskRun {
  /** Buffers to move to the thread; unusable here afterwards. */
  readonly transfer?: readonly ArrayBuffer[]
  readonly stop: TaskStop
}

/** Threads for work that may loop, crash or exhaust memory: a task is stopped by ending its thread, which is replaced. */
export interface TaskPool {
  /** Running and starting threads. */
  readonly threads: number
  /** Running and queued tasks of this thread. */
  readonly open: number
  /** First in, first out. @throws TaskFailure */
  run<R>(task: unknown, run: TaskRun): Promise<R>
  /** Fails the tasks of this thread. On control, and with scope `thread`, it ends the threads of the pool. */
  close(): Promise<void>
}
