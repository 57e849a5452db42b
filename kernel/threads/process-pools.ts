/** Both ends of the process-wide task pools: control runs the tasks that data threads send. */
import { TaskFailure, type TaskPool, type TaskRun, TaskStop } from '../contracts/task-pool.ts'
import type { SendDown, TaskDownMessage, TaskUpMessage } from './messages.ts'

/** Tasks of a dead thread may run this long: they delay others, but stopping one ends its pool thread. */
const ORPHAN_LIMIT_MS = 1_000

/** A data thread, as control sees it. */
export interface DataPort {
  readonly send: SendDown
}

/** Control's end: the open pools, and the tasks of other threads that run in them. */
export class ProcessPools {
  readonly #pools = new Map<string, TaskPool>()
  readonly #running = new Map<DataPort, Map<number, TaskStop>>()

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

  receive(from: DataPort, message: TaskUpMessage): void {
    if (message.type === 'task') void this.#run(from, message.id, message.pool, message.task)
    else this.#running.get(from)?.get(message.id)?.stop()
  }

  /** The sender has ended. */
  remove(sender: DataPort): void {
    const orphans = this.#running.get(sender)
    this.#running.delete(sender)
    if (orphans === undefined || orphans.size === 0) return
    setTimeout(() => {
      for (const stop of orphans.values()) stop.stop()
    }, ORPHAN_LIMIT_MS).unref()
  }

  /** Never rejects: failures are sent to the thread. */
  async #run(from: DataPort, id: number, name: string, task: unknown): Promise<void> {
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

type Post = (message: TaskUpMessage, transfer?: readonly ArrayBuffer[]) => void

/** A data thread's end: its unfinished tasks, over all pools. */
export class RemoteTasks {
  readonly #post: Post
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(post: Post) {
    this.#post = post
  }

  pool(name: string, threads: number): TaskPool {
    const open = new Set<number>()
    let isClosed = false
    return {
      threads,
      get open() {
        return open.size
      },
      run: async <R>(task: unknown, { transfer = [], stop }: TaskRun) => {
        if (isClosed) throw new TaskFailure('closed', 'the task pool is closed')
        if (stop.aborted) throw new TaskFailure('stopped', 'the task was stopped before it began')
        const id = this.#send(name, task, transfer)
        const pending = Promise.withResolvers<unknown>()
        this.#pending.set(id, pending)
        open.add(id)
        stop.once('abort', () => this.#post({ type: 'task_stop', id }))
        try {
          return (await pending.promise) as R
        } finally {
          stop.removeListener()
          open.delete(id)
          this.#pending.delete(id)
        }
      },
      close: async () => {
        isClosed = true
        for (const id of open) {
          this.#post({ type: 'task_stop', id })
          this.#pending.get(id)?.reject(new TaskFailure('closed', 'the task pool was closed'))
        }
      },
    }
  }

  /** @returns id of the task @throws TaskFailure if the task cannot be sent */
  #send(pool: string, task: unknown, transfer: readonly ArrayBuffer[]): number {
    const id = ++this.#lastId
    try {
      this.#post({ type: 'task', id, pool, task }, transfer)
    } catch (error) {
      throw new TaskFailure('crashed', `the task cannot be sent: ${(error as Error).message}`, error)
    }
    return id
  }

  receive(message: TaskDownMessage): void {
    const pending = this.#pending.get(message.id)
    if (message.type === 'task_done') pending?.resolve(message.value)
    else pending?.reject(new TaskFailure(message.kind, message.message))
  }
}
