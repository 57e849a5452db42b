/**
 * A pool of threads for work that may loop, crash or exhaust memory: a task is stopped by terminating its thread, which is
 * then replaced. The only importer of piscina.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import {
  type Host,
  messageOf,
  settlesWithin,
  TaskFailure,
  type TaskPool,
  type TaskRun,
  TaskStop,
} from '#kernel'

const require = createRequire(import.meta.url)

/** Time after which a thread that is still loading its modules is terminated anyway, in milliseconds. */
const LOAD_LIMIT_MS = 5_000

export interface OwnTaskPoolOptions {
  /** Module that every thread loads; its export `runTask` receives a task and returns the result. */
  readonly file: URL
  readonly threads: number
  /** Maximum number of waiting tasks; more are rejected. */
  readonly queueLimit: number
  readonly workerData?: unknown
  /** Maximum JavaScript heap of a thread, MiB; a thread that exceeds it is terminated. */
  readonly heapMiB: number
  /** Stack size of a thread, MiB. */
  readonly stackMiB: number
  /** Receives what a thread posts on its `parentPort`; on control only for a process-wide pool. */
  readonly onMessage?: (message: unknown) => void
  /** Called after a thread has ended; on control only for a process-wide pool. */
  readonly onThreadEnd?: (threadId: number) => void
}

export class OwnTaskPool implements TaskPool {
  readonly #options: OwnTaskPoolOptions
  readonly #pool: Piscina
  /** Tasks that run or wait. */
  #open = 0
  #running = 0
  readonly #waiting: PromiseWithResolvers<void>[] = []
  #isClosed = false
  /** Threads that have loaded their modules; terminating a thread before may crash the process (V8 bug). */
  readonly #loaded = new WeakSet<Worker>()
  readonly #loadLimitMs: number

  /** Starts the threads; the package is loaded with the first pool. */
  constructor(options: OwnTaskPoolOptions, loadLimitMs = LOAD_LIMIT_MS) {
    this.#loadLimitMs = loadLimitMs
    const { file, threads, workerData, heapMiB, stackMiB, onMessage } = options
    this.#options = options
    const library = require('piscina') as typeof import('piscina')
    this.#pool = new library.Piscina({
      filename: fileURLToPath(file),
      name: 'runTask',
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Number.POSITIVE_INFINITY,
      recordTiming: false,
      workerData,
      // Terminating a thread while it loads a module with require() crashes the process (Node bug); import() does not.
      execArgv: ['--no-experimental-require-module'],
      // Keeps secrets in the gateway's environment from the threads.
      env: { NODE_NO_WARNINGS: '1' },
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, stackSizeMb: stackMiB },
    })
    // Threads that end without a task are replaced; there is no task to fail.
    this.#pool.on('error', () => {})
    if (onMessage !== undefined) this.#pool.on('message', onMessage)
    // The library reports the first threads before they are ready, later ones when they are.
    const first = new Set(this.#pool.threads)
    for (const thread of first) thread.once('message', () => this.#loaded.add(thread))
    this.#pool.on('workerCreate', ({ id }: { id: number }) => {
      const thread = this.#pool.threads.find(({ threadId }) => threadId === id)
      if (thread === undefined) return
      if (!first.has(thread)) this.#loaded.add(thread)
      this.#watch(id, thread)
    })
  }

  /** Threads that are up or starting. */
  get threads(): number {
    return this.#pool.threads.length
  }

  /** Tasks that run or wait. */
  get open(): number {
    return this.#open
  }

  /** Tasks run in order of arrival. @throws TaskFailure */
  async run<R>(task: unknown, { transfer = [], stop }: TaskRun): Promise<R> {
    if (this.#isClosed) throw new TaskFailure('closed', 'the task pool is closed')
    const { threads, queueLimit } = this.#options
    if (this.#open >= threads + queueLimit) throw new TaskFailure('full', 'the task queue is full')
    this.#open++
    try {
      // Queued here, because piscina neither limits nor orders abortable tasks.
      if (this.#running < threads) this.#running++
      else await this.#waitForThread(stop)
      return await this.#runOnThread<R>(task, transfer, stop)
    } finally {
      this.#open--
    }
  }

  /** Terminates every thread, those still loading as soon as they have loaded; idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    const closed = new TaskFailure('closed', 'the task pool was closed')
    for (const waiting of this.#waiting.splice(0)) waiting.reject(closed)
    if (this.#isLoading) await this.#whenLoaded()
    await this.#pool.destroy()
  }

  async #runOnThread<R>(task: unknown, transfer: readonly ArrayBuffer[], stop: TaskStop): Promise<R> {
    const abort = new TaskStop()
    if (stop.aborted) abort.stop()
    stop.once('abort', () => this.#stop(abort))
    try {
      return await this.#pool.run(task, { transferList: [...transfer], signal: abort as never })
    } catch (error) {
      throw this.#toFailure(error, stop)
    } finally {
      stop.removeListener()
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next.resolve()
    }
  }

  /** Resolves when a thread is free for this task. */
  #waitForThread(stop: TaskStop): Promise<void> {
    const waiter = Promise.withResolvers<void>()
    this.#waiting.push(waiter)
    stop.once('abort', () => {
      const index = this.#waiting.indexOf(waiter)
      if (index < 0) return
      this.#waiting.splice(index, 1)
      waiter.reject(new TaskFailure('stopped', 'the task was stopped before it started'))
    })
    return waiter.promise
  }

  #toFailure(error: unknown, stop: TaskStop): TaskFailure {
    if (this.#isClosed) return new TaskFailure('closed', 'the task pool was closed', error)
    if (stop.aborted) return new TaskFailure('stopped', 'the task was stopped', error)
    return new TaskFailure('crashed', `the thread of the task ended: ${messageOf(error)}`, error)
  }

  #watch(id: number, thread: Worker): void {
    const { onThreadEnd } = this.#options
    if (onThreadEnd !== undefined) thread.once('exit', () => onThreadEnd(id))
  }

  /** Terminates the thread of the task. */
  #stop(abort: TaskStop): void {
    if (this.#isLoading) void this.#whenLoaded().then(() => abort.stop())
    else abort.stop()
  }

  get #isLoading(): boolean {
    return this.#pool.threads.some((thread) => !this.#loaded.has(thread))
  }

  /** Resolves when every thread has loaded its modules, or after the time limit. */
  async #whenLoaded(): Promise<void> {
    await settlesWithin(this.#load(), this.#loadLimitMs)
  }

  async #load(): Promise<void> {
    // A thread that ends meanwhile is replaced by one that has to load, too.
    while (this.#isLoading) {
      const loading = this.#pool.threads.filter((thread) => !this.#loaded.has(thread))
      await Promise.all(loading.map(firstMessage))
      for (const thread of loading) this.#loaded.add(thread)
    }
  }
}

/** A thread's first message reports that it is ready. */
function firstMessage(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    thread.once('message', () => resolve())
    thread.once('exit', () => resolve())
  })
}

/** Settings of a pool of threads. */
export interface TaskPoolOptions extends OwnTaskPoolOptions {
  /**
   * `thread` (default): a pool for this thread only. `process`: one pool for all threads of the gateway, so that its
   * modules and data are loaded once; control must open it in `start`, and tasks go through control.
   */
  readonly scope?: 'thread' | 'process'
  /** Distinguishes the process-wide pools of a plugin. Default `tasks`. */
  readonly name?: string
}

/** Opens a pool of threads for work that may loop or crash. Call in `start` or later; the plugin closes the pool. */
export function openTaskPool(host: Pick<Host, 'processPool'>, options: TaskPoolOptions): TaskPool {
  const { scope = 'thread', name = 'tasks', threads } = options
  if (scope === 'thread') return new OwnTaskPool(options)
  return host.processPool(name, threads, () => new OwnTaskPool(options))
}
