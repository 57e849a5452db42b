/** The records of one kind in memory, as the engine has them. */
import {
  type EngineRecord,
  JsonScan,
  MESH_INTAKE,
  type MeshEngine,
  type SharedRecord,
  type SharedRecords,
} from '#kernel'
import { meshErrors } from './errors.ts'

/** Removals, and records that were not taken, that are remembered. */
const MAX_REMEMBERED = 10_000
const MAX_DEPTH = 128
const SCAN = new JsonScan()

/** Writes one change. @throws mesh_unavailable, mesh_diverged */
export type WriteRecord = (change: Parameters<MeshEngine['write']>[0]) => ReturnType<MeshEngine['write']>

/** Whether the value of a record can be used. */
export type IsValid = (value: unknown, id: string) => boolean

type Listener<T> = (id: string, record: SharedRecord<T> | undefined) => void

interface RecordsParts {
  readonly write: WriteRecord
  /** Called for exceptions of watchers, and for a record that cannot be taken. */
  readonly onError: (error: unknown) => void
  /** Called for each change that was applied. */
  readonly onApplied?: (record: EngineRecord) => void
  /** Of all kinds; default: this kind is the only one. */
  readonly intake?: IntakeUse
  readonly limits?: KindLimits
  readonly isValid?: IsValid
}

export class Records<T> implements SharedRecords<T> {
  readonly kind: string
  readonly all = new Map<string, SharedRecord<T>>()
  /** Watchers hear of changes from then on. */
  isLive = false
  readonly #write: WriteRecord
  readonly #onError: (error: unknown) => void
  readonly #onApplied: (record: EngineRecord) => void
  readonly #limits: KindLimits
  readonly #use: KindUse
  readonly #isValid: IsValid
  /** Bytes by id. */
  readonly #sizes = new Map<string, number>()
  readonly #listeners: Listener<T>[] = []
  /** Revisions of removed records, against reads that are older than the removal. */
  readonly #removed = new Map<string, number>()
  /** Revisions of records that are too large or not valid: as if they were not there, until they are written anew. */
  readonly #untaken = new Map<string, number>()

  constructor(
    kind: string,
    {
      write,
      onError,
      onApplied = () => undefined,
      intake = new IntakeUse(),
      limits = KIND_LIMITS,
      isValid = () => true,
    }: RecordsParts,
  ) {
    this.kind = kind
    this.#write = write
    this.#onError = onError
    this.#onApplied = onApplied
    this.#limits = limits
    this.#use = new KindUse(intake)
    this.#isValid = isValid
  }

  async change(
    id: string,
    next: (current: T | undefined) => T | undefined,
  ): Promise<SharedRecord<T> | undefined> {
    for (;;) {
      const present = this.all.get(id)
      const value = next(present?.value)
      // Equal texts and numbers are written: what is known here may be older than the engine's.
      if (value === present?.value && (value === undefined || typeof value === 'object')) return present
      const json = value === undefined ? null : JSON.stringify(value)
      const { kind } = this
      const expected = present?.revision ?? this.#untaken.get(id) ?? 0
      const release = this.#hold(id, json)
      const done = await this.#write({ kind, id, expected, value: json }).finally(release)
      if ('conflict' in done) {
        this.#correct(id, done.conflict)
        continue
      }
      this.apply({ kind, id, revision: done.revision, value: json })
      return this.all.get(id)
    }
  }

  watch(listener: Listener<T>): void {
    this.#listeners.push(listener)
  }

  /** Takes a change of the engine; older ones than the present record are ignored. */
  apply({ id, revision, value }: EngineRecord): void {
    const known = this.all.get(id)?.revision ?? this.#removed.get(id) ?? 0
    if (revision <= known) return
    const present = value === null ? undefined : this.#take(id, value)
    this.#untaken.delete(id)
    if (value !== null && present === undefined) remember(this.#untaken, id, revision)
    if (present === undefined) {
      remember(this.#removed, id, revision)
      this.#delete(id)
      return
    }
    const record: SharedRecord<T> = { value: present, revision }
    this.#removed.delete(id)
    this.all.set(id, record)
    this.#onApplied({ kind: this.kind, id, revision, value })
    this.#tell(id, record)
  }

  /**
   * Takes all records of the engine.
   * @param revision of the engine when they were read; what is newer here stays. Infinity if its data is another
   */
  replace(records: readonly EngineRecord[], revision: number): void {
    const present = new Map(records.map((record) => [record.id, record]))
    for (const [id, known] of this.all) {
      if (known.revision > revision || present.get(id)?.revision === known.revision) continue
      // Any record of the engine counts as newer from here on.
      if (present.has(id)) this.all.set(id, { ...known, revision: 0 })
      else this.apply({ kind: this.kind, id, revision: known.revision + 1, value: null })
    }
    this.#removed.clear()
    this.#untaken.clear()
    for (const record of records) this.apply(record)
  }

  /** The present record of the engine, which differs from what was known here. */
  #correct(id: string, present: EngineRecord): void {
    if (present.value !== null) this.apply(present)
    // Removed elsewhere, and the change log has not said so yet.
    else this.#delete(id)
  }

  /** @throws mesh_record_too_large (413), mesh_full (507) */
  #hold(id: string, json: string | null): () => void {
    if (json === null) return () => undefined
    const bytes = sizeOf(id, json)
    if (bytes > MESH_INTAKE.recordBytes)
      throw meshErrors.mesh_record_too_large(bytes, MESH_INTAKE.recordBytes)
    const before = this.#sizes.get(id)
    return this.#use.hold(this.kind, before === undefined ? 1 : 0, bytes - (before ?? 0), this.#limits)
  }

  /** @returns undefined for a record that is not valid, or has no room here */
  #take(id: string, json: string): T | undefined {
    const bytes = sizeOf(id, json)
    const before = this.#sizes.get(id)
    const [records, more] = [before === undefined ? 1 : 0, bytes - (before ?? 0)]
    try {
      if (bytes > MESH_INTAKE.recordBytes || !this.#use.fits(records, more))
        throw new Error(`a record of ${bytes} bytes is more than this gateway takes of the mesh`)
      // A deeper value can be parsed, but neither written nor sent to a thread.
      if (SCAN.begin(Buffer.from(json), MAX_DEPTH).run(Number.POSITIVE_INFINITY) === 'too_deep')
        throw new Error(`the record ${id} is nested more than ${MAX_DEPTH} levels deep`)
      const value: unknown = JSON.parse(json)
      if (!this.#isValid(value, id)) throw new Error(`the record ${id} has not the form of its kind`)
      this.#use.add(records, more)
      this.#sizes.set(id, bytes)
      return value as T
    } catch (error) {
      this.#onError(error)
      return undefined
    }
  }

  #delete(id: string): void {
    if (!this.all.delete(id)) return
    this.#use.add(-1, -(this.#sizes.get(id) ?? 0))
    this.#sizes.delete(id)
    this.#onApplied({ kind: this.kind, id, revision: 0, value: null })
    this.#tell(id, undefined)
  }

  #tell(id: string, record: SharedRecord<T> | undefined): void {
    if (!this.isLive) return
    for (const listener of this.#listeners) {
      try {
        listener(id, record)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}

/** Forgets the oldest ones: a read takes milliseconds. */
function remember(revisions: Map<string, number>, id: string, revision: number): void {
  revisions.set(id, revision)
  if (revisions.size > MAX_REMEMBERED) revisions.delete(revisions.keys().next().value ?? id)
}

function sizeOf(id: string, json: string): number {
  return Buffer.byteLength(id) + Buffer.byteLength(json)
}

const MIB = 1024 * 1024

/** Limits of each kind; about, since gateways add at the same time. Far below what a gateway takes in. */
const KIND_LIMITS = { records: 65_536, bytes: 64 * MIB }
type KindLimits = typeof KIND_LIMITS

/** Use of one kind. */
class KindUse {
  readonly #total: IntakeUse
  records = 0
  bytes = 0
  /** Of changes that are being written. */
  #addedRecords = 0
  #addedBytes = 0

  constructor(total: IntakeUse) {
    this.#total = total
  }

  /** @param bytes size of a record that is added; negative for one that is removed */
  add(records: number, bytes: number): void {
    this.records += records
    this.bytes += bytes
    this.#total.records += records
    this.#total.bytes += bytes
  }

  /** Whether this gateway can take so much more. */
  fits(records: number, bytes: number): boolean {
    const { allRecords, allBytes } = MESH_INTAKE
    return this.#total.records + records <= allRecords && this.#total.bytes + bytes <= allBytes
  }

  /**
   * Holds room for a change until it was written.
   * @returns releases the room
   * @throws mesh_full (507)
   */
  hold(kind: string, records: number, bytes: number, limits: KindLimits): () => void {
    const allRecords = this.records + this.#addedRecords + records
    const allBytes = this.bytes + this.#addedBytes + bytes
    if (records > 0 && allRecords > limits.records)
      throw meshErrors.mesh_full(kind, `${limits.records} records`)
    if (bytes > 0 && allBytes > limits.bytes) throw meshErrors.mesh_full(kind, `${limits.bytes} bytes`)
    const [heldRecords, heldBytes] = [Math.max(0, records), Math.max(0, bytes)]
    this.#addedRecords += heldRecords
    this.#addedBytes += heldBytes
    return () => {
      this.#addedRecords -= heldRecords
      this.#addedBytes -= heldBytes
    }
  }
}

/** Use of all kinds together. */
export class IntakeUse {
  records = 0
  bytes = 0
}
