/** A data thread's end of the process-wide task pools: sends tasks to control and receives results. */
import { TaskFailure, type TaskPool, type TaskRun } from '../contracts/task-pool.ts'
import type { TaskDownMessage, TaskUpMessage } from './messages.ts'

type Post = (message: TaskUpMessage, transfer?: readonly ArrayBuffer[]) => void

interface RemoteTask extends PromiseWithResolvers<unknown> {
  readonly id: number
}

/** Unfinished tasks of this thread, over all pools. */
export class RemoteTasks {
  readonly #post: Post
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(post: Post) {
    this.#post = post
  }

  pool(name: string, threads: number): TaskPool {
    return new RemoteTaskPool(this, name, threads)
  }

  receive(message: TaskDownMessage): void {
    const pending = this.#pending.get(message.id)
    if (message.type === 'task_done') pending?.resolve(message.value)
    else pending?.reject(new TaskFailure(message.kind, message.message))
  }

  /** Sends a task; the caller ends it. @throws TaskFailure if the task cannot be sent */
  begin(pool: string, task: unknown, transfer: readonly ArrayBuffer[]): RemoteTask {
    const id = ++this.#lastId
    try {
      this.#post({ type: 'task', id, pool, task }, transfer)
    } catch (error) {
      throw new TaskFailure('crashed', `the task cannot be sent: ${(error as Error).message}`, error)
    }
    const pending = Promise.withResolvers<unknown>()
    this.#pending.set(id, pending)
    return { id, ...pending }
  }

  stop(id: number): void {
    this.#post({ type: 'task_stop', id })
  }

  end(id: number): void {
    this.#pending.delete(id)
  }
}

class RemoteTaskPool implements TaskPool {
  readonly threads: number
  readonly #tasks: RemoteTasks
  readonly #name: string
  readonly #open = new Map<number, (failure: TaskFailure) => void>()
  #isClosed = false

  constructor(tasks: RemoteTasks, name: string, threads: number) {
    this.#tasks = tasks
    this.#name = name
    this.threads = threads
  }

  get open(): number {
    return this.#open.size
  }

  async run<R>(task: unknown, { transfer = [], stop }: TaskRun): Promise<R> {
    if (this.#isClosed) throw new TaskFailure('closed', 'the task pool is closed')
    if (stop.aborted) throw new TaskFailure('stopped', 'the task was stopped before it began')
    const { id, promise, reject } = this.#tasks.begin(this.#name, task, transfer)
    this.#open.set(id, reject)
    stop.once('abort', () => this.#tasks.stop(id))
    try {
      return (await promise) as R
    } finally {
      stop.removeListener()
      this.#open.delete(id)
      this.#tasks.end(id)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const [id, fail] of this.#open) {
      this.#tasks.stop(id)
      fail(new TaskFailure('closed', 'the task pool was closed'))
    }
  }
}
