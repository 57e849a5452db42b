/** Runs a module without the gateway: the same envelopes, host functions and limits, everything kept in memory. */

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
import { readDescription } from '../../../wasm-sdk/description.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { EMPTY_SNAPSHOT, type HostSnapshot } from './host-state.ts'
import { type LogLine, RunnerWorker, type ThreadResult } from './runner-worker.ts'
import { buildTrial, type TrialLimits, withDefaultLimits } from './trial-module.ts'

export interface RunnerOptions {
  readonly bytes: Uint8Array
  /** Settings that the module may read. */
  readonly config?: Readonly<Record<string, string>>
  /** Limits of a gateway, see `withDefaultLimits`. A call that exceeds its time is stopped with its thread. */
  readonly limits?: Partial<TrialLimits>
  /** The same seed gives the same random bytes. */
  readonly seed?: string
  /** Takes the place of what the module says of its instances, as a registration may do. */
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  /** Is told of each call of a handler. */
  readonly onCall?: (point: AttachPoint, result: CallResult) => void
}

export interface CallResult {
  readonly outcome: 'ok' | 'failed' | 'timeout'
  /** Why it is not ok, in words. */
  readonly problem: string | null
  /** Null when the module output nothing, or failed. */
  readonly output: { readonly head: unknown; readonly body: Buffer } | null
  readonly logs: readonly LogLine[]
  /** Time in the guest, without that to make an instance. */
  readonly elapsedMs: number
  /** Units that the call has burnt: the same input always burns the same. */
  readonly fuel: number
  /** Memory of the instance after the call. */
  readonly memoryBytes: number
}

const OUT_OF_FUEL = 'the call used up its fuel, which indicates an endless loop or too much work for one call'
const DEFAULT_DESCRIPTION: ModuleDescription = Object.freeze({ abi: ABI_VERSION })

export class ModuleRunner {
  readonly #module: LoadedModule
  readonly #options: RunnerOptions
  readonly #exports: ReadonlySet<string>
  #thread: RunnerWorker | null = null
  #snapshot: HostSnapshot = EMPTY_SNAPSHOT
  #description: ModuleDescription = DEFAULT_DESCRIPTION

  private constructor(module: LoadedModule, options: RunnerOptions) {
    this.#module = module
    this.#options = options
    this.#exports = new Set(WebAssembly.Module.exports(module.module).map(({ name }) => name))
  }

  /**
   * Compiles the module, starts it and asks it to describe itself.
   *
   * @throws Error for what is no module, does not start, needs more memory than allowed, or describes itself wrongly
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

  /** What the module says about itself; the defaults when it says nothing. */
  get description(): ModuleDescription {
    return this.#description
  }

  /** Sum of each metric that the module has counted so far. */
  get metrics(): ReadonlyMap<string, number> {
    return this.#snapshot.metrics
  }

  has(point: AttachPoint): boolean {
    return this.#exports.has(EXPORT_OF_ATTACH_POINT[point])
  }

  /** Forgets values, counters and metrics. */
  async reset(): Promise<void> {
    await this.close()
    this.#snapshot = EMPTY_SNAPSHOT
  }

  /** Calls must not overlap. What a module does wrong is in the result, never thrown. */
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
    this.#description = readDescription(output ?? new Uint8Array(0))
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
      if (response !== null) {
        this.#snapshot = response.snapshot
        return response
      }
      this.#thread = null
      return { ...failed(`the call exceeded ${timeoutMs} ms`), outcome: 'timeout' }
    } catch (cause) {
      this.#thread = null
      return failed((cause as Error).message)
    }
  }

  #start(): Promise<RunnerWorker> {
    const { seed = 'weir' } = this.#options
    return RunnerWorker.start({ module: this.#module, snapshot: this.#snapshot, seed })
  }
}

function failed(problem: string): CallResult {
  return { outcome: 'failed', problem, output: null, logs: [], elapsedMs: 0, fuel: 0, memoryBytes: 0 }
}
