/** A data thread's end of the process-wide task pools: sends tasks to control and receives results. */
import { TaskFailure, type TaskPool, type TaskRun } from '../contracts/task-pool.ts'
import type { TaskDownMessage, TaskUpMessage } from './messages.ts'

type Post = (message: TaskUpMessage, transfer?: readonly ArrayBuffer[]) => void

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

  async run(
    pool: string,
    task: unknown,
    { transfer = [], stop }: TaskRun,
    onBegin: (fail: (failure: TaskFailure) => void, id: number) => void,
  ): Promise<unknown> {
    if (stop.aborted) throw new TaskFailure('stopped', 'the task was stopped before it began')
    const id = ++this.#lastId
    const pending = Promise.withResolvers<unknown>()
    try {
      this.#post({ type: 'task', id, pool, task }, transfer)
    } catch (error) {
      throw new TaskFailure('crashed', `the task cannot be sent: ${(error as Error).message}`, error)
    }
    this.#pending.set(id, pending)
    stop.once('abort', () => this.#post({ type: 'task_stop', id }))
    onBegin(pending.reject, id)
    try {
      return await pending.promise
    } finally {
      stop.removeListener()
      this.#pending.delete(id)
    }
  }

  stop(id: number): void {
    this.#post({ type: 'task_stop', id })
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

  async run<R>(task: unknown, run: TaskRun): Promise<R> {
    if (this.#isClosed) throw new TaskFailure('closed', 'the task pool is closed')
    let own = 0
    try {
      const result = this.#tasks.run(this.#name, task, run, (fail, id) => {
        own = id
        this.#open.set(id, fail)
      })
      return (await result) as R
    } finally {
      this.#open.delete(own)
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
