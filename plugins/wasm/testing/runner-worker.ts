/** The thread of a runner's guest, as the runner uses it: calls have a deadline after which the thread is terminated. */
import { Worker } from 'node:worker_threads'
import type { LoadedModule, StartedModule } from '../threads/guest-task.ts'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
}

export interface ThreadData {
  readonly module: LoadedModule
  /** Values and counters, which survive the thread. */
  readonly state: SharedArrayBuffer
  /** Of the random bytes. */
  readonly seed: string
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
}

/** Owner number of the guest thread for the lock of the state. */
export const GUEST_OWNER = 0

export interface ThreadCall {
  readonly exportName: string
  readonly input: Uint8Array
  readonly nowMs: number
  readonly tenant: string | null
  /** Fuel of the call, and per byte of the body of its output, units. */
  readonly fuel: number
  readonly bodyByteUnits: number
}

export type ThreadRequest = ThreadCall | { readonly hasDescribe: boolean }

export interface ThreadResult {
  readonly output: Uint8Array | null
  /** Why the call failed; null if it succeeded. */
  readonly problem: string | null
  readonly isOutOfFuel: boolean
  readonly logs: readonly LogLine[]
  /** What the call counted, by metric name. */
  readonly counted: readonly (readonly [name: string, delta: number])[]
  /** Time in the guest, with the restore of its state. */
  readonly elapsedMs: number
  /** Fuel used, units. */
  readonly fuel: number
  readonly memoryBytes: number
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
      // Guests get no environment.
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

  /**
   * Calls of one thread must not overlap.
   *
   * @returns null if the deadline passed; the thread is terminated then
   * @throws if the thread exits, for example when it runs out of memory
   */
  async call(call: ThreadCall, deadlineMs: number): Promise<ThreadResult | null> {
    return (await this.#request(call, deadlineMs)) as ThreadResult | null
  }

  /** Starts an instance of its own. @returns null if the deadline passed */
  async describe(hasDescribe: boolean, deadlineMs: number): Promise<StartedModule | null> {
    return (await this.#request({ hasDescribe }, deadlineMs)) as StartedModule | null
  }

  async stop(): Promise<void> {
    this.#ended ??= new Error('the thread was stopped')
    await this.#worker.terminate()
  }

  #request(request: ThreadRequest, deadlineMs: number): Promise<unknown> {
    const response = this.#next(deadlineMs)
    this.#worker.postMessage(request)
    return response
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
