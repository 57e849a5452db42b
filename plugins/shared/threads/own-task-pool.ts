/**
 * A pool of threads for work that may loop, crash or eat memory: a task is stopped by ending its thread, and the thread
 * is replaced. The only importer of piscina.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { TaskFailure, type TaskPool, type TaskRun, TaskStop } from '#kernel'

const require = createRequire(import.meta.url)

/** A thread that has not loaded its modules by then is ended all the same, milliseconds. */
const LOAD_LIMIT_MS = 5_000

export interface OwnTaskPoolOptions {
  /** Module that every thread loads; its export `runTask` gets each task and gives back the result. */
  readonly file: URL
  readonly threads: number
  /** Tasks that may wait while every thread is busy; one more is refused. */
  readonly queueLimit: number
  /** `workerData` of the threads. Their environment is empty. */
  readonly workerData?: unknown
  /** Most JavaScript heap of one thread, MiB; a thread that needs more ends. */
  readonly heapMiB: number
  /** MiB */
  readonly stackMiB: number
  /** What a thread posts on its `parentPort` while a task runs; of a process-wide pool told on control only. */
  readonly onMessage?: (message: unknown) => void
  /** A thread has ended, whatever the reason; nothing of it runs any more. Of a process-wide pool told on control only. */
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
  /** Threads that have their modules. One that is ended while it loads them may take the process along (a fault of V8's). */
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
      // A thread that is ended while it loads a module with require() takes the whole process along (a fault of
      // node's); with import() it does not.
      execArgv: ['--no-experimental-require-module'],
      // No secret of the gateway's environment gets there.
      env: { NODE_NO_WARNINGS: '1' },
      resourceLimits: { maxOldGenerationSizeMb: heapMiB, stackSizeMb: stackMiB },
    })
    // Threads that end without a task are replaced like others; there is nobody to tell.
    this.#pool.on('error', () => {})
    if (onMessage !== undefined) this.#pool.on('message', onMessage)
    // The library holds the first threads for ready from their start, and tells of later ones when they are.
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

  /** In the order in which they came. @throws TaskFailure */
  async run<R>(task: unknown, { transfer = [], stop }: TaskRun): Promise<R> {
    if (this.#isClosed) throw new TaskFailure('closed', 'the task pool is closed')
    const { threads, queueLimit } = this.#options
    if (this.#open >= threads + queueLimit) throw new TaskFailure('full', 'the task queue is full')
    this.#open++
    try {
      // Held here: piscina neither counts tasks that can be stopped against its limit, nor keeps their order.
      if (this.#running < threads) this.#running++
      else await this.#turn(stop)
      return await this.#hand<R>(task, transfer, stop)
    } finally {
      this.#open--
    }
  }

  /** Ends every thread, those that have just begun as soon as they can be; safe to call twice. */
  async close(): Promise<void> {
    this.#isClosed = true
    const closed = new TaskFailure('closed', 'the task pool was closed')
    for (const waiting of this.#waiting.splice(0)) waiting.reject(closed)
    if (this.#isLoading) await this.#whenLoaded()
    await this.#pool.destroy()
  }

  async #hand<R>(task: unknown, transfer: readonly ArrayBuffer[], stop: TaskStop): Promise<R> {
    const handed = new TaskStop()
    if (stop.aborted) handed.stop()
    stop.once('abort', () => this.#stop(handed))
    try {
      return await this.#pool.run(task, { transferList: [...transfer], signal: handed as never })
    } catch (error) {
      throw this.#toFailure(error, stop)
    } finally {
      stop.removeListener()
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next.resolve()
    }
  }

  /** Resolves when it is this task's turn: the place of one that has ended is its own then. */
  #turn(stop: TaskStop): Promise<void> {
    const turn = Promise.withResolvers<void>()
    this.#waiting.push(turn)
    stop.once('abort', () => {
      const place = this.#waiting.indexOf(turn)
      if (place < 0) return
      this.#waiting.splice(place, 1)
      turn.reject(new TaskFailure('stopped', 'the task was stopped before it began'))
    })
    return turn.promise
  }

  #toFailure(error: unknown, stop: TaskStop): TaskFailure {
    if (this.#isClosed) return new TaskFailure('closed', 'the task pool was closed', error)
    if (stop.aborted) return new TaskFailure('stopped', 'the task was stopped', error)
    const reason = error instanceof Error ? error.message : String(error)
    return new TaskFailure('crashed', `the thread of the task ended: ${reason}`, error)
  }

  #watch(id: number, thread: Worker): void {
    const { onThreadEnd } = this.#options
    if (onThreadEnd !== undefined) thread.once('exit', () => onThreadEnd(id))
  }

  /** Ends the task's thread, whichever of them that is. */
  #stop(handed: TaskStop): void {
    if (this.#isLoading) void this.#whenLoaded().then(() => handed.stop())
    else handed.stop()
  }

  get #isLoading(): boolean {
    return this.#pool.threads.some((thread) => !this.#loaded.has(thread))
  }

  /** Resolves when no thread loads modules, or the time for it is over. */
  async #whenLoaded(): Promise<void> {
    let isLate = false
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        isLate = true
        resolve()
      }, this.#loadLimitMs)
    })
    // One that ends meanwhile is replaced, and the other loads as well.
    while (this.#isLoading && !isLate) {
      const loading = this.#pool.threads.filter((thread) => !this.#loaded.has(thread))
      await Promise.race([limit, Promise.all(loading.map(nextWord))])
      for (const thread of loading) if (!isLate) this.#loaded.add(thread)
    }
    clearTimeout(timer)
  }
}

/** Its first word is that it is ready. */
function nextWord(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    thread.once('message', () => resolve())
    thread.once('exit', () => resolve())
  })
}
