/** Runs a module without a gateway, with the same envelopes, host functions and limits. */

import {
  ABI_VERSION,
  type AttachPoint,
  DESCRIBE_EXPORT,
  decodeOutput,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type GuestInput,
  type ModuleDescription,
} from '../../../wasm-sdk/abi.ts'
import { SharedState } from '../instances/shared-state.ts'
import { readDescription, unknownMember } from '../registry/description.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { GUEST_OWNER, type LogLine, RunnerWorker, type ThreadResult } from './runner-worker.ts'
import { buildTrial, type TrialLimits, withDefaultLimits } from './trial-module.ts'

export interface RunnerOptions {
  readonly bytes: Uint8Array
  /** Settings of the module. */
  readonly config?: Readonly<Record<string, string>>
  /** Limits of a gateway, see `withDefaultLimits`. A call that exceeds its time is stopped with its thread. */
  readonly limits?: Partial<TrialLimits>
  /** The same seed gives the same random bytes. */
  readonly seed?: string
  /** Overrides the instance kind of the module's description, as a registration can. */
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  /** Called after each call of a handler. */
  readonly onCall?: (point: AttachPoint, result: CallResult) => void
}

export interface CallResult {
  readonly outcome: 'ok' | 'failed' | 'timeout'
  /** Why the call is not ok; null if it is. */
  readonly problem: string | null
  /** Null if the module returned no output or failed. */
  readonly output: { readonly head: unknown; readonly body: Buffer } | null
  readonly logs: readonly LogLine[]
  /** Time in the guest, without instantiation. */
  readonly elapsedMs: number
  /** Fuel used, units; the same input always uses the same amount. */
  readonly fuel: number
  /** Memory of the instance after the call. */
  readonly memoryBytes: number
}

const OUT_OF_FUEL = 'the call used up its fuel, which indicates an endless loop or too much work for one call'
const DEFAULT_DESCRIPTION: ModuleDescription = Object.freeze({ abi: ABI_VERSION })
/** Values and counters of a module, bytes. */
const STATE_BYTES = 4_194_304
const RUNNER_OWNER = GUEST_OWNER + 1

export class ModuleRunner {
  readonly #module: LoadedModule
  readonly #options: RunnerOptions
  readonly #exports: ReadonlySet<string>
  #thread: RunnerWorker | null = null
  #threadCount = 0
  readonly #state = new SharedArrayBuffer(STATE_BYTES)
  readonly #metrics = new Map<string, number>()
  #description: ModuleDescription = DEFAULT_DESCRIPTION

  private constructor(module: LoadedModule, options: RunnerOptions) {
    this.#module = module
    this.#options = options
    this.#exports = new Set(WebAssembly.Module.exports(module.module).map(({ name }) => name))
  }

  /**
   * Compiles the module, starts it and reads its description.
   *
   * @throws Error for an invalid module, a failed start, too much memory or an invalid description
   */
  static async open(options: RunnerOptions): Promise<ModuleRunner> {
    const { bytes, config = {}, limits } = options
    // Instances of the runner are never restored: built as `reuse`.
    const settings = {
      config,
      limits: withDefaultLimits(limits),
      attachPoints: [],
      instance: 'reuse',
    } as const
    const runner = new ModuleRunner(await buildTrial(bytes, settings), options)
    try {
      await runner.#describe()
    } catch (cause) {
      await runner.close()
      throw cause
    }
    return runner
  }

  /** The module's description, or the defaults. */
  get description(): ModuleDescription {
    return this.#description
  }

  /** Sums of the module's metrics so far. */
  get metrics(): ReadonlyMap<string, number> {
    return this.#metrics
  }

  /** Calls must not overlap. Failures of the module are part of the result. */
  async call(point: AttachPoint, input: GuestInput, body?: Uint8Array): Promise<CallResult> {
    const result = await this.#call(point, input, body)
    this.#options.onCall?.(point, result)
    return result
  }

  async #call(point: AttachPoint, input: GuestInput, body?: Uint8Array): Promise<CallResult> {
    const exportName = EXPORT_OF_ATTACH_POINT[point]
    if (!this.#exports.has(exportName)) return failed(`the module has no export ${exportName}`)
    const response = await this.#run(exportName, Uint8Array.from(encodeFrame(input, body)), input)
    if ('outcome' in response) return response
    const { logs, elapsedMs, fuel, memoryBytes } = response
    if (response.isOutOfFuel)
      return { ...failed(OUT_OF_FUEL), outcome: 'timeout', logs, elapsedMs, fuel, memoryBytes }
    if (response.problem !== null) return { ...failed(response.problem), logs, elapsedMs, fuel, memoryBytes }
    try {
      const output =
        response.output === null || response.output.length === 0 ? null : decodeOutput(response.output)
      return { outcome: 'ok', problem: null, output, logs, elapsedMs, fuel, memoryBytes }
    } catch (cause) {
      const problem = `the output is not a valid frame: ${(cause as Error).message}`
      return { ...failed(problem), logs, elapsedMs, fuel, memoryBytes }
    }
  }

  async close(): Promise<void> {
    await this.#thread?.stop()
    this.#thread = null
  }

  async #describe(): Promise<void> {
    const hasDescription = this.#exports.has(DESCRIBE_EXPORT)
    const response = await this.#run(hasDescription ? DESCRIBE_EXPORT : null, new Uint8Array(0), null)
    if (response.problem !== null)
      throw new Error(`${hasDescription ? 'describe' : 'its start'} failed: ${response.problem}`)
    if (!hasDescription) return
    const output = 'outcome' in response ? null : response.output
    const description = readDescription(Buffer.from(output ?? []).toString('utf8'))
    const unknown = unknownMember(description)
    if (unknown !== undefined) throw new Error(`the description has an unknown member ${unknown}`)
    this.#description = description
  }

  /** @param exportName null only starts an instance */
  async #run(
    exportName: string | null,
    input: Uint8Array,
    head: GuestInput | null,
  ): Promise<ThreadResult | CallResult> {
    const call = {
      exportName,
      input,
      nowMs: head?.now_ms ?? 0,
      tenant: head?.request.tenant ?? null,
      instance: this.#options.instance ?? this.#description.instance ?? 'fresh',
      fuel: this.#module.fuel + this.#module.fuelPerByte * input.length,
    }
    const { timeoutMs } = this.#module
    try {
      this.#thread ??= await this.#start()
      const response = await this.#thread.call(call, timeoutMs)
      if (response === null) {
        this.#forgetThread()
        return { ...failed(`the call exceeded ${timeoutMs} ms`), outcome: 'timeout' }
      }
      for (const [name, delta] of response.counted)
        this.#metrics.set(name, (this.#metrics.get(name) ?? 0) + delta)
      return response
    } catch (cause) {
      this.#forgetThread()
      return failed((cause as Error).message)
    }
  }

  #start(): Promise<RunnerWorker> {
    const seed = `${this.#options.seed ?? 'weir'}:${this.#threadCount++}`
    return RunnerWorker.start({ module: this.#module, state: this.#state, seed })
  }

  /** The thread may have been terminated while it held the lock of the state. */
  #forgetThread(): void {
    this.#thread = null
    new SharedState(this.#state, RUNNER_OWNER).releaseDead(GUEST_OWNER)
  }
}

function failed(problem: string): CallResult {
  return { outcome: 'failed', problem, output: null, logs: [], elapsedMs: 0, fuel: 0, memoryBytes: 0 }
}
