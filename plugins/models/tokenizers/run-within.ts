/** Runs a task of a pool within a time limit. */
import { TaskFailure, type TaskPool, TaskStop } from '#kernel'

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
