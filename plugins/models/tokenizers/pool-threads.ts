/** The threads that load and encode, and the time limit of their tasks. */
import { type Host, TaskFailure, type TaskPool, TaskStop } from '#kernel'
import { openTaskPool } from '#shared'

/** The native library and the template engine nest deeper than the default allows. MiB */
const STACK_MIB = 8

export interface ThreadOptions {
  /** Module that the threads run. */
  readonly file: URL
  readonly threads: number
  readonly heapMiB: number
  readonly workerData: unknown
}

/** The queue is the caller's: a task starts at once. */
export function openThreads(host: Host, options: ThreadOptions): TaskPool {
  return openTaskPool(host, { ...options, queueLimit: 0, stackMiB: STACK_MIB })
}

/**
 * The limit includes the time in the pool's queue. When it expires, the thread of the task is terminated and replaced.
 * @param setting of the limit, for the error
 * @param limitMs milliseconds
 * @throws Error naming the limit; TaskFailure for other failures
 */
export async function runWithin<WholeResponse>(
  pool: TaskPool,
  task: unknown,
  setting: string,
  limitMs: number,
): Promise<WholeResponse> {
  const stop = new TaskStop()
  const timer = setTimeout(() => stop.stop(), limitMs).unref()
  try {
    return await pool.run<WholeResponse>(task, { stop })
  } catch (error) {
    if (error instanceof TaskFailure && error.kind === 'stopped')
      throw new Error(`timed out after ${limitMs} ms (plugins.tokenizers.${setting})`, { cause: error })
    throw error
  } finally {
    clearTimeout(timer)
  }
}
