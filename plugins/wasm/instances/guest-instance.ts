/**
 * One running guest: an instance made by Extism with the functions of our interface around it. What a guest does to its
 * instance stays there; a call is one call of its export, and what it wrote can be taken back.
 */
import type { ExtismPluginOptions } from '@extism/extism'
import { HOST_NAMESPACE } from '../../../wasm-sdk/abi.ts'
import { CHUNK_SHIFT } from '../rewrite/plan.ts'
import { EXPORT_PREFIX } from '../rewrite/rewrite-module.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { INITIALIZE_EXPORT, WASI_NAMESPACE } from './check-module.ts'
import { createPlugin } from './extism.ts'
import { GuestExchange } from './guest-exchange.ts'
import { GuestKernel, GuestLog, type ImportTable } from './guest-kernel.ts'
import { GuestSnapshot } from './guest-snapshot.ts'
import { KERNEL_NAMESPACE } from './host-imports.ts'
import { wasiFunctions } from './wasi-functions.ts'

const MAX_REASON_CHARACTERS = 2_048
/** Units of a call of the gateway, whatever way leads to it: far more than a call of the guest's own. */
const HOST_CALL_UNITS = 400
/** Of an error that such a call ends with: a guest may catch it and go on. */
const THROWN_UNITS = 5_000

/** What the functions of our interface know of the instance that calls them. */
export interface InstanceFacts {
  /** Under which values and counters are kept. */
  readonly owner: string
  /** By name: what the call has counted. */
  readonly counted: Map<string, number>
  /** Null until the module is instantiated: what its start asks for gives nothing. */
  exchange(): GuestExchange | null
  tenant(): string | null
}

/** What all guests of a thread share. */
export interface GuestSurroundings {
  /** As the guest's `get_log_level` gives it. */
  readonly logLevel: number
  /** The functions of our interface, for one instance. */
  hostFunctions(facts: InstanceFacts): ImportTable
}

/** The guest went beyond a limit of its call. */
export class LimitBroken extends Error {
  readonly limit: 'fuel' | 'stack' | 'exchange'
  constructor(limit: 'fuel' | 'stack' | 'exchange', message: string) {
    super(message)
    this.name = 'LimitBroken'
    this.limit = limit
  }
}

export class GuestInstance {
  readonly log = new GuestLog()
  /** By name: what the call has counted. */
  readonly counted = new Map<string, number>()
  calls = 0
  /** Units that the last call, or the start, has burnt. */
  burntFuel = 0
  readonly #module: LoadedModule
  readonly #surroundings: GuestSurroundings
  readonly #kernel: GuestKernel
  readonly #hasHeadroom: boolean
  #exports: WebAssembly.Exports = {}
  #memory: WebAssembly.Memory | null = null
  #exchange: GuestExchange | null = null
  #snapshot: GuestSnapshot | null = null
  #tenant: string | null = null
  /** Burnt by calls of the gateway before there is an exchange, so while the module is being instantiated. */
  #startUnits = 0

  private constructor(module: LoadedModule, surroundings: GuestSurroundings, hasHeadroom: boolean) {
    this.#module = module
    this.#hasHeadroom = hasHeadroom
    this.#surroundings = surroundings
    this.#kernel = new GuestKernel({
      module,
      log: this.log,
      logLevel: surroundings.logLevel,
      exchange: () => this.#exchange,
      exports: () => this.#exports,
      memory: () => this.#memory,
    })
  }

  /**
   * @param hasHeadroom it can be put back although its calls take more memory
   * @throws what the module's start traps with
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
    const { layout, startFuel } = this.#module
    this.#exports = exports
    this.#memory = (exports[`${EXPORT_PREFIX}memory:0`] as WebAssembly.Memory | undefined) ?? null
    const exchange = new GuestExchange(exports, layout)
    this.#exchange = exchange
    const initialize = exports[INITIALIZE_EXPORT]
    this.#guarded(() => {
      exchange.burn(this.#startUnits)
      if (typeof initialize === 'function') initialize()
    })
    this.burntFuel = startFuel - exchange.end()
    this.#snapshot = layout.restores ? new GuestSnapshot(exports, layout, exchange, this.#hasHeadroom) : null
    exchange.clear()
  }

  /** Like `run`. @returns a copy of the output */
  call(name: string, input: Uint8Array, tenant: string | null, fuel: number): Uint8Array<ArrayBuffer> | null {
    const output = this.run(name, input, tenant, fuel)
    return output && new Uint8Array(output)
  }

  /**
   * @param fuel units that the call may burn
   * @returns a view of the output, valid until the instance is reset or restored; null when the guest gave none
   * @throws when the guest traps, reports an error or goes beyond a limit: the instance is of no further use
   */
  run(name: string, input: Uint8Array, tenant: string | null, fuel: number): Buffer | null {
    const exchange = this.#exchange as GuestExchange
    this.calls++
    this.#tenant = tenant
    this.log.clear()
    if (this.counted.size > 0) this.counted.clear()
    this.#kernel.clear()
    exchange.begin(input, fuel)
    try {
      const call = this.#exports[name] as () => unknown
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

  /** Of all memories of the guest, bytes. */
  get memoryBytes(): number {
    return this.#module.layout.memories.reduce((sum, { headroomPages }, index) => {
      const memory = this.#exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      return sum + memory.buffer.byteLength - (this.#hasHeadroom ? headroomPages * 65_536 : 0)
    }, 0)
  }

  /** Ready for the next call, warm. @returns false when the instance has grown too large to be kept */
  reset(): boolean {
    return (this.#exchange as GuestExchange).clear()
  }

  /** As it was when it was opened. @returns false when that cannot be: the instance is of no further use */
  restore(): boolean {
    return this.#snapshot?.restore() === true
  }

  /** It could not be put back since a call took more memory than it had. */
  get hasGrown(): boolean {
    return this.#snapshot?.hasGrown === true
  }

  #guarded(call: () => unknown): void {
    try {
      call()
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  #toFailure(error: unknown): Error {
    const limit = error instanceof WebAssembly.RuntimeError ? (this.#exchange?.brokenLimit ?? null) : null
    if (limit === 'fuel') return new LimitBroken(limit, 'the module used up its fuel')
    if (limit === 'stack' || error instanceof RangeError)
      return new LimitBroken('stack', 'the module used up its stack')
    if (limit === 'exchange') return new LimitBroken(limit, 'the module exceeded its exchange memory')
    if (limit === 'address') return new Error('the module used an address outside of its memory blocks')
    const reason = error instanceof Error ? error.message : String(error)
    return new Error(reason.slice(0, MAX_REASON_CHARACTERS), { cause: error })
  }

  #imports(): Record<string, ImportTable> {
    const { kvOwner, usesWasi } = this.#module
    const user = this.#surroundings.hostFunctions({
      owner: kvOwner,
      counted: this.counted,
      exchange: () => this.#exchange,
      tenant: () => this.#tenant,
    })
    const wasi = wasiFunctions({
      memory: () => this.#memory,
      wrote: (at, bytes) => this.#markWritten(at, bytes),
      log: (level, text) => this.log.write(level, text),
      burn: (units) => this.#burn(units),
    })
    return {
      [KERNEL_NAMESPACE]: this.#paid(this.#kernel.kernel()),
      [HOST_NAMESPACE]: this.#paid(user),
      env: this.#paid({
        abort: (...where: [number, number, number, number]) => this.#kernel.abort(...where),
      }),
      ...(usesWasi ? { [WASI_NAMESPACE]: this.#paid(wasi) } : {}),
    }
  }

  /** Each call takes its fuel first. Extism hands its own context to every function; nothing here needs it. */
  #paid(table: ImportTable): ImportTable {
    const paid = (run: ImportTable[string]) => {
      return (_: unknown, ...args: never[]) => {
        this.#burn(HOST_CALL_UNITS)
        try {
          return run(...args)
        } catch (error) {
          if (!(error instanceof WebAssembly.RuntimeError)) this.#burn(THROWN_UNITS)
          throw error
        }
      }
    }
    return Object.fromEntries(Object.entries(table).map(([name, run]) => [name, paid(run)]))
  }

  /** @throws when there is no fuel left, in a way that no guest catches */
  #burn(units: number): void {
    if (this.#exchange !== null) {
      this.#exchange.burn(units)
      return
    }
    this.#startUnits += units
    if (this.#startUnits > this.#module.startFuel) trap()
  }

  /** What the gateway writes into the guest's memory has to be taken back like what the guest writes. */
  #markWritten(at: number, bytes: number): void {
    if (!this.#module.layout.restores || this.#exchange === null || bytes === 0) return
    const { chunks } = this.#module.layout.memories[0]
    this.#exchange.chunks.fill(
      1,
      chunks + (at >>> CHUNK_SHIFT),
      chunks + ((at + bytes - 1) >>> CHUNK_SHIFT) + 1,
    )
  }
}

/** A module that only traps: an error made here could be caught by the guest's code. */
const TRAP_MODULE = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0],
  ...[7, 8, 1, 4, 0x74, 0x72, 0x61, 0x70, 0, 0, 10, 5, 1, 3, 0, 0x00, 0x0b],
)

function trap(): void {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(TRAP_MODULE))
  const end = exports.trap as () => void
  end()
}
