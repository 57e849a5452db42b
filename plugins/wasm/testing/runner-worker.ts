/** The thread of a runner's guest, as the runner uses it: calls have a deadline after which the thread is terminated. */
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { moduleFile } from '../../../kernel/installation.ts'
import type { GuestOrder } from '../instances/guest.ts'
import type { CallReport, LoadedModule, StartedModule } from '../threads/guest-task.ts'

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

export interface ThreadCall extends Omit<GuestOrder<never>, 'read' | 'startedAtMs'> {
  readonly nowMs: number
}

export type ThreadRequest = ThreadCall | { readonly hasDescribe: boolean }

export interface ThreadResult {
  readonly output: Uint8Array | null
  readonly report: CallReport
  readonly memoryBytes: number
}

const ENTRY = moduleFile('plugins/wasm/testing/runner-thread')
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

  /** @returns the next message; null if the deadline passed */
  async #next(limitMs: number): Promise<unknown> {
    if (this.#ended !== null) throw this.#ended
    const waiting = new AbortController()
    const { signal } = waiting
    const worker = this.#worker
    const exited = once(worker, 'exit', { signal }).then(() => Promise.reject(this.#ended))
    const received = once(worker, 'message', { signal }).then(([message]) => message as unknown)
    const late = setTimeout(limitMs, null, { signal })
    const message = await Promise.race([received, exited, late]).finally(() => waiting.abort())
    if (message === null) await this.stop()
    return message
  }
}
