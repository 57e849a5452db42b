/**
 * One running guest: an Extism plugin with the host functions of our interface around it. Runs on pool threads; what a
 * guest does to its instance stays there.
 *
 * @source wasm facts 13 (what version 1.0.3 of the host SDK does and does not do), 13.1, 14
 */
import { type CallContext, createPlugin, type ExtismPluginOptions, type Plugin } from '@extism/extism'
import { HOST_NAMESPACE } from '../../wasm-sdk/abi.ts'
import { KERNEL_NAMESPACE, WASI_NAMESPACE } from './check-module.ts'
import type { LoadedModule, LogLine } from './guest-task.ts'
import { hostFunctions } from './host-functions.ts'
import type { SharedState } from './shared-state.ts'

const MAX_LOG_LINES = 64
const MAX_LOG_CHARACTERS = 2_000
/** An address has room for no more. */
const MAX_BLOCKS = 65_000
/** WASI's "not supported". */
const WASI_ENOSYS = 52

/** What belongs to one call; the instance's host functions read it. */
export interface CallScope {
  tenant: string | null
  readonly logs: LogLine[]
  /** By name. */
  readonly counted: Map<string, number>
  /** Extism memory held, bytes. */
  blockBytes: number
  blocks: number
}

/** What all guests of a thread share. */
export interface GuestSurroundings {
  readonly state: SharedState
  readonly maxGuestBlockBytes: number
  /** As the guest's `get_log_level` gives it. */
  readonly logLevel: number
  /** False when the module has counted under too many names already. */
  mayCount(module: string, name: string): boolean
}

export class GuestInstance {
  readonly scope: CallScope = { tenant: null, logs: [], counted: new Map(), blockBytes: 0, blocks: 0 }
  calls = 0
  #plugin: Plugin | null = null
  #memory: WebAssembly.Memory | null = null
  readonly #module: LoadedModule
  readonly #surroundings: GuestSurroundings

  private constructor(module: LoadedModule, surroundings: GuestSurroundings) {
    this.#module = module
    this.#surroundings = surroundings
  }

  /** @throws what the module's start function traps with */
  static async open(module: LoadedModule, surroundings: GuestSurroundings): Promise<GuestInstance> {
    const instance = new GuestInstance(module, surroundings)
    const plugin = await createPlugin(module.module, {
      useWasi: module.usesWasi,
      functions: instance.#imports() as NonNullable<ExtismPluginOptions['functions']>,
      logger: instance.#logger() as Console,
      allowedPaths: {},
      allowedHosts: [],
    })
    instance.#plugin = plugin
    const { memory } = (await plugin.getInstance()).exports
    instance.#memory = memory instanceof WebAssembly.Memory ? memory : null
    return instance
  }

  /**
   * @param input memory of its own
   * @returns a copy of the output; null when the guest gave none
   * @throws when the guest traps or reports an error: the instance is of no further use
   */
  async call(name: string, input: Uint8Array, tenant: string | null): Promise<Uint8Array | null> {
    if (this.#plugin === null) throw new Error('the instance is not open')
    this.calls++
    this.scope.tenant = tenant
    this.scope.blockBytes = 0
    this.scope.blocks = 0
    this.scope.logs.length = 0
    this.scope.counted.clear()
    const output = await this.#plugin.call(name, input)
    return output === null ? null : new Uint8Array(output.arrayBuffer().slice(0))
  }

  /** Before the next call of a warm instance: drops the blocks of the last one. */
  async reset(): Promise<void> {
    await this.#plugin?.reset()
  }

  /** Needed with WASI only, whose descriptors would stay open. */
  async close(): Promise<void> {
    if (this.#module.usesWasi) await this.#plugin?.close()
  }

  #imports(): Record<string, Record<string, (...args: never[]) => unknown>> {
    const isWarm = this.#module.instance === 'reuse'
    const kernel = {
      alloc: (context: CallContext, size: bigint) => this.#alloc(context, size),
      config_get: (context: CallContext, key: bigint) => this.#setting(context, key),
      // What newer guest libraries import and this version of the SDK lacks.
      get_log_level: () => this.#surroundings.logLevel,
      log_trace: () => {},
      http_headers: () => 0n,
      error_get: () => 0n,
      // Outgoing HTTP is not offered: the call fails in the guest.
      http_request: () => 0n,
      http_status_code: () => 0,
      // In a warm instance a variable would come back as another call's memory.
      ...(isWarm ? { var_get: () => 0n, var_set: () => {} } : {}),
    }
    return {
      [KERNEL_NAMESPACE]: kernel,
      [HOST_NAMESPACE]: hostFunctions(this.#module.uuid, this.scope, this.#surroundings),
      env: { abort: (_: CallContext, ...where: number[]) => this.#abort(where) },
      // Waiting inside WASI cannot be interrupted, not even by ending the thread.
      ...(this.#module.usesWasi ? { [WASI_NAMESPACE]: { poll_oneoff: () => WASI_ENOSYS } } : {}),
    }
  }

  /** Extism's memory lies outside of the guest's own and has no limit but this one. */
  #alloc(context: CallContext, size: bigint): bigint {
    this.scope.blockBytes += Number(size)
    this.scope.blocks++
    if (this.scope.blockBytes > this.#surroundings.maxGuestBlockBytes || this.scope.blocks > MAX_BLOCKS)
      throw new Error('the guest asked for more exchange memory than it may have')
    return context.alloc(size)
  }

  /** The SDK's own fails on empty values. */
  #setting(context: CallContext, key: bigint): bigint {
    const name = context.read(key)?.string() ?? ''
    const { config } = this.#module
    if (!Object.hasOwn(config, name)) return 0n
    return config[name] === '' ? context.alloc(0) : context.store(config[name])
  }

  /** What AssemblyScript calls where something cannot go on. */
  #abort([message, file, line, column]: number[]): never {
    throw new Error(`abort: ${this.#text(message)} at ${this.#text(file)}:${line}:${column}`)
  }

  /** A string of AssemblyScript: UTF-16, its length in bytes before it. */
  #text(pointer: number): string {
    const memory = this.#memory?.buffer
    if (memory === undefined || pointer < 4 || pointer > memory.byteLength) return '(no text)'
    const bytes = new DataView(memory).getUint32(pointer - 4, true)
    if (bytes > MAX_LOG_CHARACTERS || pointer + bytes > memory.byteLength) return '(no text)'
    return Buffer.from(memory, pointer, bytes).toString('utf16le')
  }

  #logger(): Pick<Console, LogLine[0]> {
    const write = (level: LogLine[0]) => (text: unknown) => {
      if (this.scope.logs.length < MAX_LOG_LINES)
        this.scope.logs.push([level, String(text).slice(0, MAX_LOG_CHARACTERS)])
    }
    return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  }
}
