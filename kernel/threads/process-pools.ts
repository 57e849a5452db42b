/** Control's end of the process-wide task pools: runs the tasks that other threads send. */
import { type TaskFailure, type TaskPool, TaskStop } from '../contracts/task-pool.ts'
import type { SendDown, TaskUpMessage } from './messages.ts'

/** Tasks of a dead thread may run this long: they delay others, but stopping one ends its pool thread. */
const ORPHAN_LIMIT_MS = 1_000

export interface TaskSender {
  readonly send: SendDown
}

export class ProcessPools {
  readonly #pools = new Map<string, TaskPool>()
  readonly #running = new Map<TaskSender, Map<number, TaskStop>>()

  /** @throws Error if the name is taken */
  add(name: string, pool: TaskPool): TaskPool {
    if (this.#pools.has(name)) throw new Error(`the process-wide task pool ${name} is open already`)
    this.#pools.set(name, pool)
    return {
      get threads() {
        return pool.threads
      },
      get open() {
        return pool.open
      },
      run: (task, run) => pool.run(task, run),
      close: () => {
        if (this.#pools.get(name) === pool) this.#pools.delete(name)
        return pool.close()
      },
    }
  }

  receive(from: TaskSender, message: TaskUpMessage): void {
    if (message.type === 'task') void this.#run(from, message.id, message.pool, message.task)
    else this.#running.get(from)?.get(message.id)?.stop()
  }

  /** The sender has ended. */
  remove(sender: TaskSender): void {
    const orphans = this.#running.get(sender)
    this.#running.delete(sender)
    if (orphans === undefined || orphans.size === 0) return
    setTimeout(() => {
      for (const stop of orphans.values()) stop.stop()
    }, ORPHAN_LIMIT_MS).unref()
  }

  /** Never rejects: failures are sent to the thread. */
  async #run(from: TaskSender, id: number, name: string, task: unknown): Promise<void> {
    const stop = new TaskStop()
    const stops = this.#running.get(from) ?? new Map<number, TaskStop>()
    this.#running.set(from, stops)
    stops.set(id, stop)
    try {
      const pool = this.#pools.get(name)
      if (pool === undefined) {
        from.send({ type: 'task_failed', id, kind: 'closed', message: `no task pool ${name} is open` })
        return
      }
      // Task and result have no other user on this thread, so their buffers are moved, not copied.
      const value = await pool.run(task, { stop, transfer: buffersOf(task) })
      from.send({ type: 'task_done', id, value }, buffersOf(value))
    } catch (error) {
      const { kind = 'crashed', message } = error as Partial<TaskFailure> & Error
      from.send({ type: 'task_failed', id, kind, message })
    } finally {
      stops.delete(id)
    }
  }
}

/** Buffers of the value and of its direct members, which are moved to the other thread instead of copied. */
function buffersOf(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>()
  const add = (one: unknown) => {
    const buffer = ArrayBuffer.isView(one) ? one.buffer : one
    if (buffer instanceof ArrayBuffer) buffers.add(buffer)
  }
  add(value)
  if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value))
    Object.values(value).forEach(add)
  return [...buffers]
}
