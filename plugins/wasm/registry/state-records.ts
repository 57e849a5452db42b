/** Where values of modules are kept, as records: in the store of this gateway, or in the mesh. On control only. */
import {
  type Change,
  defineValidator,
  GATEWAY_TENANT,
  GatewayError,
  type Logger,
  type MeshService,
  type SharedRecords,
  type Static,
  type StoreService,
  Type,
} from '#kernel'
import { counter, MAX_VALUE_BYTES } from '../instances/shared-state.ts'
import { COUNTER_BYTES } from '../instances/slot-table.ts'
import type { StateChange, StoredValue } from '../instances/stored-state.ts'

/** Characters of the hash of a module's name, which precedes the hash of the key in an id. */
const MODULE_CHARACTERS = 32
/** After its expiry, a record of the mesh is removed by the first gateway that finds it, milliseconds. */
const REMOVE_AFTER_MS = 60_000
const MAX_REMOVED = 256

const RecordSchema = Type.Object({
  value: Type.String({ maxLength: Math.ceil(MAX_VALUE_BYTES / 3) * 4 }),
  tenant: Type.Union([Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }), Type.Null()]),
  expiresAtMs: Type.Number(),
})
type StateRecord = Static<typeof RecordSchema>
const validator = defineValidator(RecordSchema)

export interface StateRecords {
  /** Values of a module, with their keys. @throws if the store cannot be read */
  load(module: string): Promise<readonly (readonly [key: Uint8Array, value: StoredValue])[]>
  /**
   * Never rejects. @param onWritten called for each change that was written, or never will be
   * @returns why changes were not written; null if all were
   */
  write(
    module: string,
    changes: readonly StateChange[],
    onWritten: (change: StateChange) => void,
  ): Promise<unknown>
  /** The newest value, if others write too; undefined if only this gateway does. */
  newest(module: string, key: Uint8Array): StoredValue | null | undefined
  /** Removes expired records. */
  sweep(): Promise<void>
}

export class StateInStore implements StateRecords {
  readonly #store: StoreService
  readonly #collection

  constructor(store: StoreService) {
    this.#store = store
    this.#collection = store.collection<StateRecord>(
      'wasm-state',
      (value) => validator.problem(value) === null,
    )
  }

  async load(module: string): Promise<(readonly [Uint8Array, StoredValue])[]> {
    const found: (readonly [Uint8Array, StoredValue])[] = []
    const range = { from: module, to: `${module}g`, limit: 1_000 }
    let after: string | null | undefined
    while (after !== null) {
      const page = await this.#collection.range(GATEWAY_TENANT, { ...range, ...(after && { after }) })
      for (const { id, value } of page.records) found.push([keyOf(id), fromRecord(value)])
      after = page.next
    }
    return found
  }

  async write(
    module: string,
    changes: readonly StateChange[],
    onWritten: (change: StateChange) => void,
  ): Promise<unknown> {
    const written = changes.map((change): Change => {
      const target = {
        collection: this.#collection.name,
        tenant: GATEWAY_TENANT,
        id: idOf(module, change.key),
      }
      const { value, expiresAtMs } = change
      if (value === null) return { ...target, kind: 'delete' }
      return { ...target, kind: 'put', value: toRecord({ ...change, value }), expiresAtMs }
    })
    try {
      await this.#store.write(written)
    } catch (error) {
      return error
    }
    for (const change of changes) onWritten(change)
    return null
  }

  newest(): undefined {}

  async sweep(): Promise<void> {}
}

/** Sealed with the secret of the mesh. */
interface MeshRecord {
  readonly expiresAtMs: number
  readonly sealed: string
}

export class StateInMesh implements StateRecords {
  readonly #mesh: MeshService
  readonly #log: Logger
  readonly #records: SharedRecords<MeshRecord>
  /** Ids of records that this gateway writes now, whose changes are applied afterwards. */
  readonly #writing = new Set<string>()

  /**
   * Call in `register`.
   * @param onChange called for each change that another gateway made
   */
  constructor(mesh: MeshService, log: Logger, onChange: (module: string, key: Uint8Array) => void) {
    this.#mesh = mesh
    this.#log = log
    this.#records = mesh.records<MeshRecord>('wasm-state')
    this.#records.watch((id) => {
      if (!this.#writing.has(id)) onChange(id.slice(0, MODULE_CHARACTERS), keyOf(id))
    })
  }

  async load(module: string): Promise<(readonly [Uint8Array, StoredValue])[]> {
    const ids = [...this.#records.all.keys()].filter((id) => id.startsWith(module))
    return ids.flatMap((id) => {
      const value = this.#open(id, this.#records.all.get(id)?.value)
      return value === null ? [] : [[keyOf(id), value] as const]
    })
  }

  async write(
    module: string,
    changes: readonly StateChange[],
    onWritten: (change: StateChange) => void,
  ): Promise<unknown> {
    let failure: unknown = null
    const writeOne = async (change: StateChange) => {
      const id = idOf(module, change.key)
      this.#writing.add(id)
      try {
        await this.#records.change(id, (current) => this.#next(id, change, current))
        onWritten(change)
      } catch (error) {
        failure ??= error
        // One that the mesh has no room for stays on this gateway.
        if (error instanceof GatewayError && error.kind !== 'unavailable') onWritten(change)
      } finally {
        this.#writing.delete(id)
      }
    }
    await Promise.all(changes.map(writeOne))
    return failure
  }

  newest(module: string, key: Uint8Array): StoredValue | null {
    const id = idOf(module, key)
    return this.#open(id, this.#records.all.get(id)?.value)
  }

  async sweep(): Promise<void> {
    const isOld = (record: MeshRecord) => !(record.expiresAtMs > Date.now() - REMOVE_AFTER_MS)
    const old = [...this.#records.all].filter(([, { value }]) => isOld(value)).slice(0, MAX_REMOVED)
    const removed = old.map(([id]) =>
      this.#records.change(id, (current) => (current === undefined || isOld(current) ? undefined : current)),
    )
    // What remains is removed later.
    await Promise.allSettled(removed)
  }

  #next(id: string, change: StateChange, current: MeshRecord | undefined): MeshRecord | undefined {
    if (change.value === null) return undefined
    const before = change.added === null ? null : this.#open(id, current)
    if (change.added === null || before === null) {
      const value = change.added === null ? change.value : counter(change.added)
      return this.#seal(id, { ...change, value })
    }
    if (before.value.length !== COUNTER_BYTES) return current
    const { buffer, byteOffset } = before.value
    const sum = new DataView(buffer, byteOffset).getBigInt64(0, true) + change.added
    return this.#seal(id, { ...before, value: counter(sum) })
  }

  #seal(id: string, value: StoredValue): MeshRecord {
    const sealed = this.#mesh.seal(JSON.stringify(toRecord(value)), contextOf(id))
    return { expiresAtMs: value.expiresAtMs, sealed }
  }

  /** Null if there is none, or it has expired. Records of the mesh are not trusted. */
  #open(id: string, record: MeshRecord | undefined): StoredValue | null {
    if (record === undefined) return null
    try {
      const opened: unknown = JSON.parse(this.#mesh.open(String(record.sealed), contextOf(id)))
      const problem = validator.problem(opened)
      if (problem !== null) throw new Error(`${problem.field} ${problem.text}`)
      const value = fromRecord(opened as StateRecord)
      return value.expiresAtMs > Date.now() ? value : null
    } catch (err) {
      this.#log.warn({ record: id, err }, 'wasm module state of the mesh ignored: its record is damaged')
      return null
    }
  }
}

function toRecord({ value, tenant, expiresAtMs }: StoredValue): StateRecord {
  return { value: base64(value), tenant: tenant === null ? null : base64(tenant), expiresAtMs }
}

function fromRecord({ value, tenant, expiresAtMs }: StateRecord): StoredValue {
  const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'base64'))
  return { value: bytes(value), tenant: tenant === null ? null : bytes(tenant), expiresAtMs }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

/** Both hexadecimal, so that the values of a module are a range. */
function idOf(module: string, key: Uint8Array): string {
  return module + Buffer.from(key).toString('hex')
}

function keyOf(id: string): Uint8Array {
  return Uint8Array.from(Buffer.from(id.slice(MODULE_CHARACTERS), 'hex'))
}

function contextOf(id: string): string {
  return `wasm-state ${id}`
}
