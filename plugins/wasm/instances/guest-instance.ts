/** An instance of a module with the host functions of the interface. Each call runs one export; its writes can be undone. */
import type { ExtismPluginOptions } from '@extism/extism'
import { HOST_NAMESPACE } from '../../../wasm-sdk/abi.ts'
import { CHUNK_SHIFT, PAGE_BYTES } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, KERNEL_NAMESPACE } from '../rewrite/rewrite-module.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { INITIALIZE_EXPORT, WASI_NAMESPACE } from './check-module.ts'
import { createPlugin } from './extism.ts'
import { GuestExchange } from './guest-exchange.ts'
import { GuestKernel, GuestLog, type GuestState, type ImportTable } from './guest-kernel.ts'
import { GuestSnapshot } from './guest-snapshot.ts'
import { wasiFunctions } from './wasi-functions.ts'

const MAX_REASON_CHARACTERS = 2_048
/** Fuel of a host call, units. */
const HOST_CALL_UNITS = 400
/** Fuel of an exception in a host call, which the guest may catch. */
const THROWN_UNITS = 5_000

/** Shared by all guests of a thread. */
export interface GuestSurroundings {
  /** Result of `get_log_level`. */
  readonly logLevel: number
  /** Host functions of one instance. */
  hostFunctions(instance: GuestState): ImportTable
}

/** The call of the guest, with the reading of its output, needs more than its fuel. */
export class FuelExceeded extends Error {}

/** Messages of traps by the limit that caused them; that of fuel is an error of its own. */
const TRAPS = {
  stack: 'the module used up its stack',
  exchange: 'the module exceeded its exchange memory',
  heap: 'the module exceeded its memory',
  address: 'the module used an address outside of its memory blocks',
} as const

export class GuestInstance implements GuestState {
  readonly module: LoadedModule
  readonly log = new GuestLog()
  readonly counted = new Map<string, number>()
  readonly observed: (string | number)[] = []
  readonly gauged = new Map<string, number>()
  calls = 0
  /** Fuel used by the last call or the start, units. */
  burntFuel = 0
  tenant: string | null = null
  exports: WebAssembly.Exports = {}
  memory: WebAssembly.Memory | null = null
  exchange: GuestExchange | null = null
  readonly #surroundings: GuestSurroundings
  readonly #kernel: GuestKernel
  readonly #hasHeadroom: boolean
  #snapshot: GuestSnapshot | null = null
  /** Fuel used by host calls during instantiation. */
  #startUnits = 0

  private constructor(module: LoadedModule, surroundings: GuestSurroundings, hasHeadroom: boolean) {
    this.module = module
    this.#hasHeadroom = hasHeadroom
    this.#surroundings = surroundings
    this.#kernel = new GuestKernel(this, surroundings.logLevel)
  }

  /**
   * @param hasHeadroom calls may grow the memory and the instance can still be restored
   * @throws if the start of the module traps
   */
  static async open(
    module: LoadedModule,
    surroundings: GuestSurroundings,
    hasHeadroom = false,
  ): Promise<GuestInstance> {
    const instance = new GuestInstance(module, surroundings, hasHeadroom)
    const plugin = await createPlugin(module.module, {
      functions: instance.#imports() as NonNullable<ExtismPluginOptions['functions']>,
      allowedPaths: {},
      allowedHosts: [],
    })
    instance.#take((await plugin.getInstance()).exports)
    return instance
  }

  #take(exports: WebAssembly.Exports): void {
    const { layout, startFuel } = this.module
    this.exports = exports
    this.memory = (exports[`${EXPORT_PREFIX}memory:0`] as WebAssembly.Memory | undefined) ?? null
    const exchange = new GuestExchange(exports, layout)
    this.exchange = exchange
    const initialize = exports[INITIALIZE_EXPORT]
    try {
      exchange.burn(this.#startUnits)
      if (typeof initialize === 'function') initialize()
    } catch (error) {
      throw this.#toFailure(error)
    }
    this.burntFuel = startFuel - exchange.end()
    this.#snapshot = layout.restores ? new GuestSnapshot(exports, layout, exchange, this.#hasHeadroom) : null
    exchange.clear()
  }

  /**
   * @param fuel of the call, units
   * @returns a view of the output, valid until the instance is reset or restored; null if there is none
   * @throws if the guest traps, reports an error or exceeds a limit; the instance must be discarded
   */
  run(name: string, input: Uint8Array, tenant: string | null, fuel: number): Buffer | null {
    const exchange = this.exchange as GuestExchange
    this.calls++
    this.tenant = tenant
    this.log.clear()
    if (this.counted.size > 0) this.counted.clear()
    if (this.observed.length > 0) this.observed.length = 0
    if (this.gauged.size > 0) this.gauged.clear()
    this.#kernel.clear()
    exchange.begin(input, fuel)
    try {
      const call = this.exports[name] as () => unknown
      call()
    } catch (error) {
      throw this.#toFailure(error)
    } finally {
      this.burntFuel = fuel - exchange.end()
    }
    const { error } = exchange
    if (error !== null) throw new Error(error)
    return exchange.output
  }

  /** Size of all memories of the guest, bytes. */
  get memoryBytes(): number {
    return this.module.layout.memories.reduce((sum, { headroomPages }, index) => {
      const memory = this.exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      return sum + memory.buffer.byteLength - (this.#hasHeadroom ? headroomPages * PAGE_BYTES : 0)
    }, 0)
  }

  /** Prepares a warm instance for the next call. @returns false if it has grown too large to be kept */
  reset(): boolean {
    return (this.exchange as GuestExchange).clear()
  }

  /** Restores the initial state. @returns false if that is not possible and the instance must be discarded */
  restore(): boolean {
    return this.#snapshot?.restore() === true
  }

  /** It cannot be restored because a call grew its memory. */
  get hasGrown(): boolean {
    return this.#snapshot?.hasGrown === true
  }

  #toFailure(error: unknown): Error {
    const limit = error instanceof WebAssembly.RuntimeError ? (this.exchange?.brokenLimit ?? null) : null
    if (limit === 'fuel') return new FuelExceeded('the module used up its fuel')
    if (limit !== null) return new Error(TRAPS[limit])
    if (error instanceof RangeError) return new Error(TRAPS.stack)
    const reason = error instanceof Error ? error.message : String(error)
    return new Error(reason.slice(0, MAX_REASON_CHARACTERS), { cause: error })
  }

  #imports(): Record<string, ImportTable> {
    return {
      [KERNEL_NAMESPACE]: this.#paid(this.#kernel.functions()),
      [HOST_NAMESPACE]: this.#paid(this.#surroundings.hostFunctions(this)),
      env: this.#paid({ abort: this.#kernel.abort }),
      ...(this.module.usesWasi && { [WASI_NAMESPACE]: this.#paid(wasiFunctions(this)) }),
    }
  }

  /** Burns the fuel of each call first, and drops the context that Extism passes. */
  #paid(table: ImportTable): ImportTable {
    const paid = (run: ImportTable[string]) => {
      return (_: unknown, ...args: never[]) => {
        this.burn(HOST_CALL_UNITS)
        try {
          return run(...args)
        } catch (error) {
          if (!(error instanceof WebAssembly.RuntimeError)) this.burn(THROWN_UNITS)
          throw error
        }
      }
    }
    return Object.fromEntries(Object.entries(table).map(([name, run]) => [name, paid(run)]))
  }

  burn(units: number): void {
    if (this.exchange !== null) {
      this.exchange.burn(units)
      return
    }
    this.#startUnits += units
    if (this.#startUnits > this.module.startFuel) trap()
  }

  markWritten(at: number, bytes: number): void {
    if (!this.module.layout.restores || this.exchange === null || bytes === 0) return
    const { chunks } = this.module.layout.memories[0]
    const [first, last] = [at >>> CHUNK_SHIFT, (at + bytes - 1) >>> CHUNK_SHIFT]
    this.exchange.chunks.fill(1, chunks + first, chunks + last + 1)
  }
}

/** A module that only traps: guests could catch a JavaScript exception. */
const TRAP_MODULE = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0],
  ...[7, 8, 1, 4, 0x74, 0x72, 0x61, 0x70, 0, 0, 10, 5, 1, 3, 0, 0x00, 0x0b],
)

function trap(): void {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(TRAP_MODULE))
  const end = exports.trap as () => void
  end()
}
