/** The task pool contract: work that is kept off the threads that serve, and how it is stopped. */

/** Why a task gave no result: no place in the queue, stopped by its caller, its thread ended, or the pool was closed. */
export type TaskFailureKind = 'full' | 'stopped' | 'crashed' | 'closed'

export class TaskFailure extends Error {
  readonly kind: TaskFailureKind
  constructor(kind: TaskFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'TaskFailure'
    this.kind = kind
  }
}

/** Stops one task. An AbortController does the same at ten times the cost. */
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
  /** Moved to the thread: unusable here afterwards. */
  readonly transfer?: readonly ArrayBuffer[]
  readonly stop: TaskStop
}

/** Threads for work that may loop, crash or eat memory: a task is stopped by ending its thread, which is replaced. */
export interface TaskPool {
  /** Threads that are up or starting. */
  readonly threads: number
  /** Tasks of this thread that run or wait. */
  readonly open: number
  /** In the order in which they came. @throws TaskFailure */
  run<R>(task: unknown, run: TaskRun): Promise<R>
  /** Ends this thread's part in it: tasks under way fail. On control, and with scope `thread`, every thread of the pool ends. */
  close(): Promise<void>
}
