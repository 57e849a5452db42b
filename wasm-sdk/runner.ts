/** Runs a module without the gateway: the same envelopes, host functions and limits, everything kept in memory. */
import {
  ABI_VERSION,
  type AttachPoint,
  DESCRIBE_EXPORT,
  decodeFrame,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type GuestInput,
  type ModuleDescription,
} from './abi.ts'
import { readDescription } from './description.ts'
import { GuestThread, type LogLine, type ThreadReply } from './guest-thread.ts'
import { EMPTY_SNAPSHOT, type HostSnapshot } from './host-state.ts'
import { limitMemory } from './memory-limit.ts'

export interface RunnerOptions {
  readonly bytes: Uint8Array
  /** Settings that the module may read. */
  readonly config?: Readonly<Record<string, string>>
  /** A call that takes longer is stopped with its thread. Default 5000 ms: more than a gateway gives, for busy machines. */
  readonly deadlineMs?: number
  /** Memory of the module; it cannot grow beyond. Default 64 MiB. */
  readonly maxMemoryBytes?: number
  /** The same seed gives the same random bytes. */
  readonly seed?: string
  /** Takes the place of what the module says of its instances, as a registration may do. */
  readonly instance?: 'fresh' | 'reuse'
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
  /** Memory of the instance after the call. */
  readonly memoryBytes: number
}

/** Modules of some languages import it; the gateway gives it to those that are registered for it. */
export const WASI_NAMESPACE = 'wasi_snapshot_preview1'

const PAGE_BYTES = 65_536
const DEFAULT_DEADLINE_MS = 5_000
const DEFAULT_MEMORY_BYTES = 64 * 1024 * 1024
const DEFAULT_DESCRIPTION: ModuleDescription = Object.freeze({ abi: ABI_VERSION })

export class ModuleRunner {
  readonly #module: WebAssembly.Module
  readonly #options: RunnerOptions
  readonly #exports: ReadonlySet<string>
  #thread: GuestThread | null = null
  #snapshot: HostSnapshot = EMPTY_SNAPSHOT
  #description: ModuleDescription = DEFAULT_DESCRIPTION

  private constructor(module: WebAssembly.Module, options: RunnerOptions) {
    this.#module = module
    this.#options = options
    this.#exports = new Set(WebAssembly.Module.exports(module).map(({ name }) => name))
  }

  /**
   * Compiles the module and asks it to describe itself.
   *
   * @throws Error for what is no module, needs more memory than allowed, or describes itself wrongly
   */
  static async open(options: RunnerOptions): Promise<ModuleRunner> {
    const maxPages = Math.floor((options.maxMemoryBytes ?? DEFAULT_MEMORY_BYTES) / PAGE_BYTES)
    const limited = Uint8Array.from(limitMemory(options.bytes, maxPages))
    const runner = new ModuleRunner(await WebAssembly.compile(limited), options)
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
    const reply = await this.#run(exportName, Uint8Array.from(encodeFrame(input, body)), input)
    if ('outcome' in reply) return reply
    const { logs, elapsedMs, memoryBytes } = reply
    if (reply.problem !== null) return { ...failed(reply.problem), logs, elapsedMs, memoryBytes }
    try {
      const output = reply.output === null || reply.output.length === 0 ? null : decodeFrame(reply.output)
      return { outcome: 'ok', problem: null, output, logs, elapsedMs, memoryBytes }
    } catch (cause) {
      const problem = `the output is no frame: ${(cause as Error).message}`
      return { ...failed(problem), logs, elapsedMs, memoryBytes }
    }
  }

  async close(): Promise<void> {
    await this.#thread?.stop()
    this.#thread = null
  }

  async #describe(): Promise<void> {
    if (!this.#exports.has(DESCRIBE_EXPORT)) return
    const reply = await this.#run(DESCRIBE_EXPORT, new Uint8Array(0), null)
    if (reply.problem !== null) throw new Error(`describe failed: ${reply.problem}`)
    const output = 'outcome' in reply ? null : reply.output
    this.#description = readDescription(output ?? new Uint8Array(0))
  }

  async #run(
    exportName: string,
    input: Uint8Array,
    head: GuestInput | null,
  ): Promise<ThreadReply | CallResult> {
    const deadlineMs = this.#options.deadlineMs ?? DEFAULT_DEADLINE_MS
    const call = {
      exportName,
      input,
      nowMs: head?.now_ms ?? 0,
      tenant: head?.request.tenant ?? null,
      isReuse: (this.#options.instance ?? this.#description.instance) === 'reuse',
    }
    try {
      this.#thread ??= await this.#start()
      const reply = await this.#thread.call(call, deadlineMs)
      if (reply !== null) {
        this.#snapshot = reply.snapshot
        return reply
      }
      this.#thread = null
      return { ...failed(`the call took longer than ${deadlineMs} ms`), outcome: 'timeout' }
    } catch (cause) {
      this.#thread = null
      return failed((cause as Error).message)
    }
  }

  #start(): Promise<GuestThread> {
    const { config = {}, seed = 'weir' } = this.#options
    const module = this.#module
    const usesWasi = WebAssembly.Module.imports(module).some((one) => one.module === WASI_NAMESPACE)
    return GuestThread.start({ module, config, snapshot: this.#snapshot, seed, usesWasi })
  }
}

function failed(problem: string): CallResult {
  return { outcome: 'failed', problem, output: null, logs: [], elapsedMs: 0, memoryBytes: 0 }
}
