/**
 * A copy of the records in the local store, for a start without the engine. Written behind the changes: after a crash it may
 * lack the last ones, which the engine has.
 */
import {
  type Change,
  type EnginePosition,
  type EngineRecord,
  GATEWAY_TENANT,
  isObject,
  type Logger,
  type StoreService,
} from '#kernel'
import { FailureLog } from '#shared'

const RECORDS = 'mesh-copy'
const STATE = 'mesh-copy-state'
/** Of one write, about. */
const BATCH_BYTES = 8 * 1024 * 1024

/** What the copy is of. */
export interface CopyState {
  readonly mesh: string
  /** The last change that must not be lost. */
  readonly position: EnginePosition
  /** Epochs of the engine. */
  readonly epochs: readonly string[]
  /** Living gateways, this one included. */
  readonly gateways: number
}

interface CopyParts {
  readonly store: StoreService
  readonly mesh: string
  readonly log: Logger
}

export class RecordCopy {
  readonly #parts: CopyParts
  /** Records that are not written yet, by key. */
  readonly #waiting = new Map<string, EngineRecord>()
  #state: CopyState | null = null
  #writing: Promise<void> | null = null
  readonly #failures: FailureLog

  constructor(parts: CopyParts) {
    this.#parts = parts
    this.#failures = new FailureLog(parts.log, 'mesh records could not be stored for a later start')
  }

  /** @returns null if there is none, or it is of another mesh. @throws errors of the store */
  async read(): Promise<{ readonly records: readonly EngineRecord[]; readonly state: CopyState } | null> {
    const { store, mesh } = this.#parts
    const records = await store.collection<EngineRecord>(RECORDS, isRecord).list(GATEWAY_TENANT)
    const state = await store.collection<CopyState>(STATE, isState).get(GATEWAY_TENANT, STATE)
    if (state?.mesh === mesh) return { records, state }
    for (const record of records) this.note({ ...record, value: null })
    return null
  }

  /** Writes the record soon. */
  note(record: EngineRecord): void {
    this.#waiting.set(`${record.kind}.${record.id}`, record)
    this.#flush()
  }

  /** Writes the state soon, behind the records that wait. */
  noteState(state: CopyState): void {
    this.#state = state
    this.#flush()
  }

  /** @returns resolves after the last write */
  async settled(): Promise<void> {
    await this.#writing
  }

  #flush(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
  }

  async #write(): Promise<void> {
    // Changes of one turn are written together.
    await new Promise(setImmediate)
    while (this.#waiting.size > 0 || this.#state !== null) {
      const changes = this.#take()
      try {
        await this.#parts.store.write(changes)
        this.#failures.succeeded()
      } catch (error) {
        this.#failures.failed(error)
      }
    }
  }

  #take(): Change[] {
    const changes: Change[] = []
    let bytes = 0
    for (const [id, record] of this.#waiting) {
      if (bytes > BATCH_BYTES) return changes
      const target = { collection: RECORDS, tenant: GATEWAY_TENANT, id }
      changes.push(
        record.value === null ? { kind: 'delete', ...target } : { kind: 'put', ...target, value: record },
      )
      bytes += record.value?.length ?? 0
      this.#waiting.delete(id)
    }
    if (this.#state !== null)
      changes.push({ kind: 'put', collection: STATE, tenant: GATEWAY_TENANT, id: STATE, value: this.#state })
    this.#state = null
    return changes
  }
}

/** Whether a value has the form of a stored record of the mesh. */
export function isRecord(value: unknown): boolean {
  if (!isObject(value)) return false
  const { kind, id, revision, value: json } = value
  return [kind, id, json].every((text) => typeof text === 'string') && Number.isSafeInteger(revision)
}

function isState(value: unknown): boolean {
  if (!isObject(value)) return false
  const { mesh, position, epochs, gateways } = value
  const isTexts = Array.isArray(epochs) && epochs.every((epoch) => typeof epoch === 'string')
  return typeof mesh === 'string' && isTexts && typeof gateways === 'number' && isPosition(position)
}

export function isPosition(value: unknown): value is EnginePosition {
  if (!isObject(value)) return false
  const { epoch, revision } = value
  return typeof epoch === 'string' && epoch.length <= 128 && typeof revision === 'number' && revision >= 0
}
