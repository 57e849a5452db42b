/** Opens task pools: threads for this thread alone, or one set of them for all threads of the gateway. */
import type { Host, TaskPool } from '#kernel'
import { OwnTaskPool, type OwnTaskPoolOptions } from './own-task-pool.ts'

export interface TaskPoolOptions extends OwnTaskPoolOptions {
  /**
   * `thread`: threads for this thread alone. `process`: one set of threads for all threads of the gateway, so that what
   * they load is in memory once; control opens it and must do so in its `start`, and tasks go through control. Default
   * `thread`.
   */
  readonly scope?: 'thread' | 'process'
  /** Tells the process-wide pools of a plugin from each other. Default `tasks`. */
  readonly name?: string
}

/** Threads of the plugin's own, for work that may loop or crash; from `start` on. The plugin closes the pool. */
export function openTaskPool(host: Pick<Host, 'processPool'>, options: TaskPoolOptions): TaskPool {
  const { scope = 'thread', name = 'tasks', threads } = options
  if (scope === 'thread') return new OwnTaskPool(options)
  return host.processPool(name, threads, () => new OwnTaskPool(options))
}
