/** Fills the tables of modules whose values are kept, and writes what guests changed to the store or the mesh. On control only. */
import { hash } from 'node:crypto'
import type { Logger, MeshService, StoreService } from '#kernel'
import { RepeatedWork } from '#shared'
import type { WasmConfig } from '../config.ts'
import { POOL_WAIT_MS } from '../instances/shared-lock.ts'
import { StoredState, type StoredValue } from '../instances/stored-state.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { StateInMesh, StateInStore, type StateRecords } from './state-records.ts'

/** Between writes, milliseconds. */
const WRITE_MS = 500
/** Changes of a module that are written at once. */
const MAX_CHANGES = 512
/** Between removals of expired records, in writes. */
const SWEEP_EVERY = 60
/** An owner number that no thread has. */
const CONTROL = -3

interface KeptState {
  readonly name: string
  /** Hash of the name, in ids of records. */
  readonly module: string
  readonly memory: SharedArrayBuffer
  readonly state: StoredState
  readonly records: StateRecords
  /** `clears` and `rejected` of the state when they were seen last; -1 if values must be applied again. */
  clears: number
  rejected: number
}

interface KeeperParts {
  readonly config: WasmConfig['kv']
  readonly store: StoreService | undefined
  readonly mesh: MeshService | undefined
  readonly log: Logger
}

export class StateKeeper {
  readonly #config: WasmConfig['kv']
  readonly #log: Logger
  readonly #places: Readonly<Record<'store' | 'mesh', StateRecords | null>>
  readonly #kept = new Map<string, KeptState>()
  #isFailing = false
  #runs = 0
  readonly #work = new RepeatedWork(async () => {
    await this.#write()
    if (++this.#runs % SWEEP_EVERY === 0) await this.#places.mesh?.sweep()
    return WRITE_MS
  }, WRITE_MS)

  /** Call in `register`. */
  constructor({ config, store, mesh, log }: KeeperParts) {
    this.#config = config
    this.#log = log
    const onChange = (module: string, key: Uint8Array) => this.#onChange(module, key)
    this.#places = {
      store: store === undefined ? null : new StateInStore(store),
      mesh: mesh?.shares('wasm') ? new StateInMesh(mesh, log, onChange) : null,
    }
  }

  /** Modules with kept values, and the bytes that these use. */
  get used(): readonly (readonly [name: string, bytes: number])[] {
    return [...this.#kept.values()].map(({ name, state }) => [name, state.usedBytes])
  }

  /**
   * The table of a module, with the values that are kept; null if they are in memory only.
   * @throws ModuleRejected if this gateway has no such place, or it cannot be read
   */
  async open({ name, kv = 'memory' }: ModuleDescriptor): Promise<SharedArrayBuffer | null> {
    if (kv === 'memory') return null
    const records = this.#places[kv]
    if (records === null)
      throw new ModuleRejected(
        kv === 'store'
          ? 'kv: store requires the plugin storage'
          : 'kv: mesh requires a mesh that shares wasm (plugins.mesh.shares, and mesh-valkey)',
      )
    const known = this.#kept.get(keptName(name, kv))
    if (known !== undefined) return known.memory
    const { moduleBytes, tenantBytes } = this.#config
    const memory = StoredState.create(moduleBytes, tenantBytes)
    const state = new StoredState(memory, CONTROL, POOL_WAIT_MS)
    const module = hash('sha256', name).slice(0, 32)
    const kept: KeptState = { name, module, memory, state, records, clears: -1, rejected: 0 }
    try {
      await this.#fill(kept)
    } catch (error) {
      throw new ModuleRejected(`its values in the ${kv} cannot be read`, error)
    }
    this.#kept.set(keptName(name, kv), kept)
    void this.#work.start()
    return memory
  }

  /** Closes the tables of modules that are no longer used. Their values remain until they expire. */
  async retain(used: readonly Pick<ModuleDescriptor, 'name' | 'kv'>[]): Promise<void> {
    const names = new Set(used.map(({ name, kv = 'memory' }) => keptName(name, kv)))
    for (const [id, kept] of this.#kept) {
      if (names.has(id)) continue
      await this.#writeOne(kept)
      this.#kept.delete(id)
    }
  }

  async close(): Promise<void> {
    await this.#work.stop()
    await this.#write()
  }

  async #write(): Promise<void> {
    const failures = await Promise.all([...this.#kept.values()].map((kept) => this.#writeOne(kept)))
    const err = failures.find((failure) => failure !== null) ?? null
    if (err !== null && !this.#isFailing) this.#log.warn({ err }, 'wasm module state not written')
    if (err === null && this.#isFailing) this.#log.info({}, 'wasm module state written again')
    this.#isFailing = err !== null
  }

  /** Never rejects. @returns why values were not read or written; null if all were */
  async #writeOne(kept: KeptState): Promise<unknown> {
    const { name, module, state, records } = kept
    if (state.rejected !== kept.rejected) {
      kept.rejected = state.rejected
      this.#log.warn(
        { module: name, rejected: kept.rejected },
        'wasm module state rejected: the module or a tenant uses all of plugins.wasm.kv',
      )
    }
    try {
      if (state.clears !== kept.clears) await this.#fill(kept)
    } catch (error) {
      return error
    }
    const changes = state.changes(MAX_CHANGES)
    if (changes.length === 0) return null
    return records.write(module, changes, (change) => {
      state.settle(change)
      const newest = records.newest(module, change.key)
      if (newest !== undefined) this.#apply(kept, change.key, newest)
    })
  }

  /** Applies all values that are kept: at the start, and after a thread ended while it changed the table. */
  async #fill(kept: KeptState): Promise<void> {
    const { clears } = kept.state
    for (const [key, value] of await kept.records.load(kept.module)) this.#apply(kept, key, value)
    kept.clears = clears
  }

  #onChange(module: string, key: Uint8Array): void {
    for (const kept of this.#kept.values()) {
      const newest = kept.module === module ? kept.records.newest(module, key) : undefined
      if (newest !== undefined) this.#apply(kept, key, newest)
    }
  }

  #apply(kept: KeptState, key: Uint8Array, value: StoredValue | null): void {
    if (kept.state.apply(key, value)) return
    this.#log.warn(
      { module: kept.name },
      'wasm module state not read: plugins.wasm.kv.moduleBytes is too small',
    )
  }
}

function keptName(name: string, kv: string): string {
  return `${kv} ${name}`
}
