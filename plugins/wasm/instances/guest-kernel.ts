/** Kernel functions of Extism that need the gateway, and `env.abort`. The rewriter adds the memory functions to the module. */
import { EXPORT_PREFIX } from '../rewrite/rewrite-module.ts'
import type { LoadedModule, LogLine } from '../threads/guest-task.ts'
import type { GuestExchange } from './guest-exchange.ts'

const NOTHING = new Uint8Array(0)
const MAX_LINES = 64
/** Names and values of variables, bytes. */
const MAX_VARIABLE_BYTES = 1_048_576
/** Longest name of a setting or variable, bytes. */
const MAX_NAME_BYTES = 4_096
/** Longest text of `abort`, bytes. */
const MAX_ABORT_TEXT_BYTES = 4_000

/** An instance as host functions use it. */
export interface GuestState {
  readonly module: LoadedModule
  readonly log: GuestLog
  /** Counts of the call by series. */
  readonly counted: Map<string, number>
  /** Observations of the call: [series, value, …]. */
  readonly observed: (string | number)[]
  /** Last values of gauges in the call, by series. */
  readonly gauged: Map<string, number>
  /** Tenant of the call. */
  readonly tenant: string | null
  readonly exports: WebAssembly.Exports
  /** The first memory of the guest. */
  readonly memory: WebAssembly.Memory | null
  /** Null during instantiation, when host functions return nothing. */
  readonly exchange: GuestExchange | null
  /** @throws a trap that guests cannot catch if the fuel is used up */
  burn(units: number): void
  /** Marks writes of the gateway to the guest's memory, which are restored like those of the guest. */
  markWritten(at: number, bytes: number): void
}

/** Functions by name, without Extism's own first parameter. */
export type ImportTable = Record<string, (...args: never[]) => unknown>

/** Log lines of one call. */
export class GuestLog {
  readonly lines: LogLine[] = []
  /** Number of lines beyond the limit. */
  dropped = 0

  write(level: LogLine[0], text: string): void {
    if (this.lines.length < MAX_LINES) this.lines.push([level, text])
    else this.dropped++
  }

  clear(): void {
    if (this.lines.length > 0) this.lines.length = 0
    this.dropped = 0
  }
}

export class GuestKernel {
  readonly #instance: GuestState
  readonly #logLevel: number
  readonly #settings: ReadonlyMap<string, Uint8Array>
  readonly #variables = new Map<string, Uint8Array>()
  #variableBytes = 0

  /** @param logLevel result of `get_log_level` */
  constructor(instance: GuestState, logLevel: number) {
    this.#instance = instance
    this.#logLevel = logLevel
    const settings = Object.entries(instance.module.config)
    this.#settings = new Map(settings.map(([name, value]) => [name, Buffer.from(value)]))
  }

  /** Deletes the variables, which last for one call. */
  clear(): void {
    if (this.#variables.size > 0) this.#variables.clear()
    this.#variableBytes = 0
  }

  functions(): ImportTable {
    const { log: lines, module } = this.#instance
    const log = (level: LogLine[0]) => (address: bigint) => {
      lines.write(level, this.#instance.exchange?.text(address) ?? '')
    }
    const readFrom = (values: ReadonlyMap<string, Uint8Array>) => (key: bigint) => {
      const name = this.#name(key)
      return this.#give(name === null ? undefined : values.get(name))
    }
    const table: ImportTable = {
      config_get: readFrom(this.#settings),
      var_get: readFrom(this.#variables),
      var_set: (key: bigint, value: bigint) => this.#setVariable(this.#name(key), value),
      log_trace: () => {},
      log_debug: log('debug'),
      log_info: log('info'),
      log_warn: log('warn'),
      log_error: log('error'),
      get_log_level: () => this.#logLevel,
      error_get: () => 0n,
    }
    for (const name of module.layout.exchanged)
      table[name] = (...args: never[]) => this.#exchanged(name)(...args)
    return table
  }

  /** Called by AssemblyScript for an exception. */
  readonly abort = (message: number, file: number, line: number, column: number): never => {
    throw new Error(`${this.#text(message)} at ${this.#text(file)}:${line}:${column}`)
  }

  /** Called through references only; direct calls were rewritten. */
  #exchanged(name: string): (...args: never[]) => unknown {
    return this.#instance.exports[EXPORT_PREFIX + name] as (...args: never[]) => unknown
  }

  /** Null if the name is too long. */
  #name(key: bigint): string | null {
    const block = this.#instance.exchange?.read(key) ?? NOTHING
    if (block.length > MAX_NAME_BYTES) return null
    return Buffer.from(block.buffer, block.byteOffset, block.length).toString('utf8')
  }

  #give(value: Uint8Array | undefined): bigint {
    return value === undefined ? 0n : (this.#instance.exchange?.give(value) ?? 0n)
  }

  #setVariable(name: string | null, value: bigint): void {
    if (name === null) return
    const block = this.#instance.exchange?.read(value) ?? null
    const bytes = name.length + (block?.length ?? 0)
    if (block === null) this.#variables.delete(name)
    else if (this.#variableBytes + bytes <= MAX_VARIABLE_BYTES) {
      this.#variableBytes += bytes
      this.#variables.set(name, Uint8Array.from(block))
    }
  }

  /** A string of AssemblyScript: UTF-16, preceded by its length in bytes. */
  #text(pointer: number): string {
    const memory = this.#instance.memory?.buffer
    if (memory === undefined || pointer < 4 || pointer > memory.byteLength) return '(no text)'
    const bytes = new DataView(memory).getUint32(pointer - 4, true)
    if (bytes > MAX_ABORT_TEXT_BYTES || pointer + bytes > memory.byteLength) return '(no text)'
    return Buffer.from(memory, pointer, bytes).toString('utf16le')
  }
}
