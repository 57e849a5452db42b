/** The records of one kind in memory, as the engine has them. */
import type { EngineRecord, MeshEngine, SharedRecord, SharedRecords } from '#kernel'
import { meshErrors } from './errors.ts'

/** Modules have their bytes in blobs; everything else is small. */
const MAX_RECORD_BYTES = 4 * 1024 * 1024

/** Removals that are remembered. */
const MAX_REMOVED = 10_000

/** Writes one change. @throws mesh_unavailable, mesh_diverged */
export type WriteRecord = (
  change: Parameters<MeshEngine['write']>[0],
) => Promise<Awaited<ReturnType<MeshEngine['write']>>>

type Listener<T> = (id: string, record: SharedRecord<T> | undefined) => void

export class Records<T> implements SharedRecords<T> {
  readonly kind: string
  readonly all = new Map<string, SharedRecord<T>>()
  /** Watchers hear of changes from then on. */
  isLive = false
  readonly #write: WriteRecord
  readonly #onError: (error: unknown) => void
  readonly #listeners: Listener<T>[] = []
  /** Revisions of removed records, against reads that are older than the removal. */
  readonly #removed = new Map<string, number>()
  /** Revisions of records of the engine that are not JSON: as if they were not there, until they are written anew. */
  readonly #unreadable = new Map<string, number>()

  /** @param onError called for exceptions of watchers, and for a record that is no JSON */
  constructor(kind: string, write: WriteRecord, onError: (error: unknown) => void) {
    this.kind = kind
    this.#write = write
    this.#onError = onError
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
      const bytes = json === null ? 0 : Buffer.byteLength(json)
      if (bytes > MAX_RECORD_BYTES) throw meshErrors.mesh_record_too_large(bytes, MAX_RECORD_BYTES)
      const { kind } = this
      const expected = present?.revision ?? this.#unreadable.get(id) ?? 0
      const done = await this.#write({ kind, id, expected, value: json })
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
    const present = value === null ? undefined : this.#parse(value)
    if (value !== null && present === undefined) this.#unreadable.set(id, revision)
    else this.#unreadable.delete(id)
    if (present === undefined) {
      this.#removed.set(id, revision)
      // The oldest ones: a read takes milliseconds.
      if (this.#removed.size > MAX_REMOVED) this.#removed.delete(this.#removed.keys().next().value ?? id)
      if (this.all.delete(id)) this.#tell(id, undefined)
      return
    }
    const record: SharedRecord<T> = { value: present, revision }
    this.#removed.delete(id)
    this.all.set(id, record)
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
    this.#unreadable.clear()
    for (const record of records) this.apply(record)
  }

  /** The present record of the engine, which differs from what was known here. */
  #correct(id: string, present: EngineRecord): void {
    if (present.value !== null) this.apply(present)
    // Removed elsewhere, and the change log has not said so yet.
    else if (this.all.delete(id)) this.#tell(id, undefined)
  }

  #parse(value: string): T | undefined {
    try {
      return JSON.parse(value) as T
    } catch (error) {
      this.#onError(error)
      return undefined
    }
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
