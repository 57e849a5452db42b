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
import type { LoadedModule, LogLine } from '../threads/guest-task.ts'
import { inlineStartFuel, mayRunHere } from '../threads/placements.ts'
import { GUEST_OWNER, RunnerWorker, type ThreadResult } from './runner-worker.ts'
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
  readonly logs: readonly { readonly level: LogLine[0]; readonly text: string }[]
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
   * @throws ModuleRejected with the reason for which the gateway would reject it
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
    const result = await this.#run(point, frame, input, units).catch((cause: Error) => cause)
    if (result === null)
      return { ...failed(`the call exceeded ${this.module.timeoutMs} ms`), outcome: 'timeout' }
    if (result instanceof Error) return failed(result.message)
    const { output, memoryBytes } = result
    const { failure, logs, counted, durationUs, fuel } = result.report
    for (let at = 0; at < counted.length; at += 2) {
      const name = String(counted[at])
      this.#metrics.set(name, (this.#metrics.get(name) ?? 0) + Number(counted[at + 1]))
    }
    const shown = logs.map(([level, text]) => ({ level, text }))
    const measured = { logs: shown, elapsedMs: durationUs / 1000, fuel, memoryBytes }
    if (failure?.kind === 'fuel')
      return { ...failed(outOfFuel(point, units)), ...measured, outcome: 'timeout' }
    if (failure !== null) return { ...failed(failure.message), ...measured }
    try {
      const decoded = output === null || output.length === 0 ? null : decodeOutput(output)
      return { outcome: 'ok', problem: null, output: decoded, ...measured }
    } catch (cause) {
      return { ...failed(`the output is not a valid frame: ${(cause as Error).message}`), ...measured }
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

  /** @returns null if the call exceeded its time */
  async #run(
    point: AttachPoint,
    input: Uint8Array,
    head: GuestInput,
    fuel: number,
  ): Promise<ThreadResult | null> {
    const call = {
      exportName: EXPORT_OF_ATTACH_POINT[point],
      input,
      nowMs: head.now_ms,
      tenant: head.request.tenant,
      fuel,
      bodyByteUnits: point === 'OnStreamEvent' ? UNITS_OF_DATA_BYTE : 0,
    }
    let result: ThreadResult | null = null
    try {
      this.#thread ??= await this.#start()
      result = await this.#thread.call(call, this.module.timeoutMs)
      return result
    } finally {
      if (result === null) this.#forgetThread()
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
