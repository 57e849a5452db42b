/** Runs a module without a gateway, with the same envelopes, host functions and limits. */

import {
  ABI_VERSION,
  type AttachPoint,
  decodeOutput,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type GuestInput,
  type ModuleDescription,
} from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { SharedState } from '../instances/shared-state.ts'
import { unknownMember } from '../registry/description.ts'
import { UNITS_OF_DATA_BYTE } from '../streams/run-stream.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { inlineStartFuel, mayRunHere } from '../threads/placements.ts'
import { GUEST_OWNER, type LogLine, RunnerWorker, type ThreadResult } from './runner-worker.ts'
import { loadTrial, type TrialModule, type TrialSettings, withDefaultLimits } from './trial-module.ts'

/** A call that exceeds its time is stopped with its thread. */
export interface RunnerOptions extends TrialSettings {
  /** The same seed gives the same random bytes. */
  readonly seed?: string
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

const RUNNER_OWNER = GUEST_OWNER + 1

export class ModuleRunner {
  /** The module as the gateway would run it. */
  readonly module: LoadedModule
  /** What is probably wrong with the output of `describe` although the gateway accepts it; null if nothing is. */
  readonly remark: string | null
  readonly #options: RunnerOptions
  readonly #limits: WasmConfig
  readonly #exports: ReadonlySet<string>
  #thread: RunnerWorker | null = null
  #threadCount = 0
  readonly #state: SharedArrayBuffer
  readonly #metrics = new Map<string, number>()

  private constructor({ module, json }: TrialModule, options: RunnerOptions) {
    this.module = module
    this.remark = remarkOn(json)
    this.#options = options
    this.#limits = withDefaultLimits(options.limits)
    this.#state = new SharedArrayBuffer(this.#limits.stateBytes)
    this.#exports = new Set(WebAssembly.Module.exports(module.module).map(({ name }) => name))
  }

  /**
   * Loads the module as a registration does.
   *
   * @throws ModuleRejected, BadModule with the reason for which the gateway would reject it
   */
  static async open(options: RunnerOptions): Promise<ModuleRunner> {
    return new ModuleRunner(await loadTrial(options), options)
  }

  /** The description of the module, completed by the defaults. */
  get description(): Required<Omit<ModuleDescription, 'settings'>> & Pick<ModuleDescription, 'settings'> {
    const { needs, instance, onFailure, settings } = this.module
    return { abi: ABI_VERSION, needs, instance, on_failure: onFailure, settings: settings ?? undefined }
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
    const frame = Uint8Array.from(encodeFrame(input, body))
    const units = this.#fuelOf(point, frame.length, body?.length ?? 0)
    const response = await this.#run(point, frame, input, units)
    if ('outcome' in response) return response
    const { logs, elapsedMs, fuel, memoryBytes } = response
    if (response.isOutOfFuel)
      return { ...failed(outOfFuel(point, units)), outcome: 'timeout', logs, elapsedMs, fuel, memoryBytes }
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

  /** Like the gateway: OnPick and modules placed inline run within `inline.fuel`. */
  #fuelOf(point: AttachPoint, frameBytes: number, bodyBytes: number): number {
    const { inline } = this.#limits
    const { module } = this
    const isSmall = bodyBytes <= inline.maxBodyBytes && module.burntAtStart <= inlineStartFuel(inline.fuel)
    const isInline = module.placement === 'inline' && mayRunHere(module) && isSmall
    return point === 'OnPick' || isInline ? inline.fuel : module.fuel + module.fuelPerByte * frameBytes
  }

  async #run(
    point: AttachPoint,
    input: Uint8Array,
    head: GuestInput,
    fuel: number,
  ): Promise<ThreadResult | CallResult> {
    const call = {
      exportName: EXPORT_OF_ATTACH_POINT[point],
      input,
      nowMs: head.now_ms,
      tenant: head.request.tenant,
      fuel,
      bodyByteUnits: point === 'OnStreamEvent' ? UNITS_OF_DATA_BYTE : 0,
    }
    const { timeoutMs } = this.module
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
    return RunnerWorker.start({
      module: this.module,
      state: this.#state,
      seed,
      reuseCalls: this.#limits.reuseCalls,
    })
  }

  /** The thread may have been terminated while it held the lock of the state. */
  #forgetThread(): void {
    this.#thread = null
    new SharedState(this.#state, RUNNER_OWNER).releaseDead(GUEST_OWNER)
  }
}

function remarkOn(json: string | null): string | null {
  if (json === null) return null
  if (json === '') return '`describe` outputs nothing'
  const unknown = unknownMember(JSON.parse(json))
  return unknown === undefined ? null : `the description has an unknown member ${unknown}`
}

function outOfFuel(point: AttachPoint, units: number): string {
  const setting = point === 'OnPick' ? ' (plugins.wasm.inline.fuel)' : ''
  return `the call used up its fuel of ${units} units${setting}, which indicates an endless loop or too much work for one call`
}

function failed(problem: string): CallResult {
  return { outcome: 'failed', problem, output: null, logs: [], elapsedMs: 0, fuel: 0, memoryBytes: 0 }
}
