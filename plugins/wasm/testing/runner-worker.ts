/** A thread with one guest in it, seen from outside: calls with a deadline, and an end that no guest can prevent. */
import { Worker } from 'node:worker_threads'
import type { LoadedModule } from '../threads/guest-task.ts'
import type { HostSnapshot } from './host-state.ts'

export interface LogLine {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
}

export interface ThreadData {
  readonly module: LoadedModule
  readonly snapshot: HostSnapshot
  readonly seed: string
}

export interface ThreadCall {
  /** Null: an instance is started, and that is all. */
  readonly exportName: string | null
  readonly input: Uint8Array
  readonly nowMs: number
  readonly tenant: string | null
  /** Warm instances are those of calls before. */
  readonly instance: 'fresh' | 'reuse' | 'shared'
  /** Units that the call may burn. */
  readonly fuel: number
}

export interface ThreadResult {
  readonly output: Uint8Array | null
  /** Why the call failed; null when it did not. */
  readonly problem: string | null
  readonly isOutOfFuel: boolean
  readonly logs: readonly LogLine[]
  /** Time in the guest, without that to make an instance. */
  readonly elapsedMs: number
  /** Units that the call has burnt. */
  readonly fuel: number
  readonly memoryBytes: number
  readonly snapshot: HostSnapshot
}

const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
const ENTRY = new URL(`./runner-thread.${suffix}`, import.meta.url)
/** Enough for the thread to start on a busy machine. */
const START_LIMIT_MS = 30_000
const HEAP_MIB = 128

export class RunnerWorker {
  readonly #worker: Worker
  #ended: Error | null = null

  private constructor(data: ThreadData) {
    this.#worker = new Worker(ENTRY, {
      workerData: data,
      // Guests get no environment, and warnings of Node about them are noise.
      env: {},
      execArgv: ['--no-warnings'],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    })
    this.#worker.on('error', (error) => {
      this.#ended = error
    })
    this.#worker.on('exit', () => {
      this.#ended ??= new Error('the thread of the module exited')
    })
  }

  static async start(data: ThreadData): Promise<RunnerWorker> {
    const thread = new RunnerWorker(data)
    if ((await thread.#next(START_LIMIT_MS)) === null)
      throw new Error('the thread of the module did not start')
    return thread
  }

  get isAlive(): boolean {
    return this.#ended === null
  }

  /**
   * Calls of one thread must not overlap.
   *
   * @returns null when the deadline passed: the thread is gone then, with whatever ran in it
   * @throws when the thread ended by itself, such as for want of memory
   */
  async call(call: ThreadCall, deadlineMs: number): Promise<ThreadResult | null> {
    const response = this.#next(deadlineMs)
    this.#worker.postMessage(call)
    return (await response) as ThreadResult | null
  }

  async stop(): Promise<void> {
    this.#ended ??= new Error('the thread was stopped')
    await this.#worker.terminate()
  }

  #next(limitMs: number): Promise<unknown> {
    if (this.#ended !== null) return Promise.reject(this.#ended)
    const worker = this.#worker
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        worker.off('message', onMessage)
        worker.off('exit', onExit)
      }
      const onMessage = (message: unknown) => {
        done()
        resolve(message)
      }
      const onExit = () => {
        done()
        reject(this.#ended ?? new Error('the thread of the module exited'))
      }
      const timer = setTimeout(() => {
        done()
        this.stop().then(() => resolve(null), reject)
      }, limitMs)
      worker.on('message', onMessage)
      worker.on('exit', onExit)
    })
  }
}
