/** The records of all kinds as the engine has them: reads them, follows its change log, and detects that it has lost data. */
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Acknowledge,
  type EnginePosition,
  type EngineState,
  type Logger,
  type MeshEngine,
  messageOf,
  type Positions,
  retryAfter,
  type SharedRecords,
} from '#kernel'
import type { Channels } from './channels.ts'
import { meshErrors } from './errors.ts'
import type { CopyState, RecordCopy } from './record-copy.ts'
import { IntakeUse, type IsValid, Records, type WriteRecord } from './records.ts'

/** Longest wait for a change or a message of another gateway. */
const FOLLOW_MS = 5_000
/** Between reads that fail: changes of others are seen within a second after the engine is back. */
const RETRY_PAUSE_MS = 500
const RETRY_AFTER_SEC = 2
/** Kinds of records, of other releases too. */
const MAX_KINDS = 64

interface EngineDataParts {
  readonly engine: MeshEngine
  /** Receive the messages that arrive with the changes. */
  readonly channels: Channels
  readonly acknowledge: Acknowledge
  /** Null without a local store. */
  readonly copy: RecordCopy | null
  readonly mesh: string
  readonly log: Logger
}

/** A gateway of the mesh, and the last change that it knows to be acknowledged. */
export interface KnownPosition {
  readonly name: string
  readonly position: EnginePosition | null
}

export class EngineData {
  readonly #parts: EngineDataParts
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own type, which only its owner knows
  readonly #kinds = new Map<string, Records<any>>()
  readonly #intake = new IntakeUse()
  #positions: Positions = { log: '0-0', last: { epoch: '', revision: 0 }, channels: new Map() }
  /** History of the engine, as it was read with the records. */
  #epochs: readonly string[] = []
  /** The last change that the engine must not lose; null before the records were read. */
  #known: EnginePosition | null = null
  #hasRead = false
  #isLoading = false
  #isLive = false
  #isStopped = false
  #following: Promise<void> | null = null
  #reading: Promise<void> | null = null
  /** Revision of the engine at the last renewal that the change log had not reached. */
  #behindSince: number | null = null
  /** Of the engine, at the last renewal. */
  #engineRevision = 0
  /** What the copy has. */
  #storedState = ''
  /** Gateways that have changes which the engine lacks. */
  #ahead: readonly string[] = []
  /** Changes that were applied anew. */
  conflicts = 0

  constructor(parts: EngineDataParts) {
    this.#parts = parts
  }

  /** Of the last change that this gateway has applied. */
  get revision(): number {
    return this.#positions.last.revision
  }

  /** Published to the other gateways, so that none writes on in an engine that has lost it. */
  get known(): EnginePosition | null {
    return this.#known
  }

  /** The engine lacks changes that a gateway of the mesh has. */
  get isDiverged(): boolean {
    return this.#ahead.length > 0
  }

  /** Changes that the engine has and this gateway has not, at the last renewal. */
  get lag(): number {
    return Math.max(0, this.#engineRevision - this.#positions.last.revision)
  }

  records<T>(kind: string, isValid?: IsValid): SharedRecords<T> {
    let records = this.#kinds.get(kind)
    if (records === undefined) {
      records = new Records<T>(kind, {
        write: (change) => this.#write(change),
        onError: (err) =>
          this.#parts.log.error({ err, kind }, 'change of a mesh record could not be applied'),
        onApplied: (record) => this.#isLoading || this.#parts.copy?.note(record),
        intake: this.#intake,
        isValid,
      })
      records.isLive = this.#isLive
      this.#kinds.set(kind, records)
    }
    return records
  }

  /** Number of records of all kinds. */
  get size(): number {
    return this.#intake.records
  }

  /** Number of records of a kind, for the status. */
  count(kind: string): number {
    return this.#kinds.get(kind)?.all.size ?? 0
  }

  /** Takes the records that were stored last. @returns what is known of the mesh; null without a copy */
  async load(): Promise<CopyState | null> {
    const stored = await this.#parts.copy?.read()
    if (!stored) return null
    const { records, state } = stored
    this.#isLoading = true
    for (const [kind, own] of Map.groupBy(records, ({ kind }) => kind)) {
      this.#keep(kind)
      this.#kinds.get(kind)?.replace(own, 0)
    }
    this.#isLoading = false
    this.#known = state.position
    this.#positions = { ...this.#positions, last: state.position }
    this.#epochs = state.epochs
    return state
  }

  /** Changes are announced to watchers from now on. */
  goLive(): void {
    this.#isLive = true
    for (const records of this.#kinds.values()) records.isLive = true
  }

  /** Reads all records, unless joining has read them, and follows changes from then on. */
  async start(): Promise<void> {
    await this.#reading
    if (!this.#hasRead) await this.#readAll()
    this.goLive()
    this.#following = this.#follow()
  }

  /** Call before the engine is closed, which ends the last read. @returns resolves after it */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#following
    await this.#parts.copy?.settled()
  }

  /**
   * Call after each renewal.
   * @param isNew this gateway has joined, for the first time or anew
   * @param gateways of the renewal, with this one, and what each had published by then
   */
  onState(state: EngineState, isNew: boolean, gateways: readonly KnownPosition[]): void {
    this.#engineRevision = state.revision
    this.#setAhead(
      state,
      gateways.filter(({ position }) => position !== null && !hasChange(state, position)),
    )
    if (this.isDiverged) return
    for (const { position } of gateways) this.#confirm(position)
    this.#storeState(gateways.length)
    const { last } = this.#positions
    // The change log is read within milliseconds: a renewal later something is missing.
    const isBehind = this.#behindSince !== null && last.revision < this.#behindSince
    this.#behindSince = state.revision > last.revision ? state.revision : null
    if (!isNew && !isBehind) return
    this.#reading ??= this.#readAll()
      .catch((err: unknown) => this.#parts.log.warn({ err }, 'mesh records could not be read'))
      .finally(() => {
        this.#reading = null
      })
  }

  /** Discards what this gateway has and the engine lacks. @throws mesh_unavailable (503) */
  async accept(): Promise<void> {
    this.#known = null
    await changing(() => this.#readAll())
    this.#ahead = []
  }

  /** @throws mesh_diverged (503) */
  refuseDiverged(): void {
    if (this.isDiverged) throw meshErrors.mesh_diverged.with(retryAfter(RETRY_AFTER_SEC))
  }

  /**
   * Writes records and blobs of this gateway into an engine that has lost them. Records added to it since are lost.
   * @param blobs bytes by hash
   * @returns what was written
   */
  async restore(blobs: ReadonlyMap<string, Buffer>): Promise<{ records: number; blobs: number }> {
    const records = [...this.#kinds.values()].flatMap(({ kind, all }) =>
      [...all].map(([id, { revision, value }]) => ({ kind, id, revision, value: JSON.stringify(value) })),
    )
    const { engine } = this.#parts
    const given = [...blobs]
    await changing(async () => {
      // Before the records that refer to them.
      for (const [sha256, bytes] of given) await engine.putBlob(sha256, bytes)
      await engine.restore(records, this.#epochs, this.revision)
    })
    await this.accept()
    return { records: records.length, blobs: given.length }
  }

  async #write(change: Parameters<WriteRecord>[0]): ReturnType<WriteRecord> {
    this.refuseDiverged()
    const done = await changing(() => this.#parts.engine.write(change))
    if ('conflict' in done) this.conflicts++
    else this.#confirm(done)
    return done
  }

  async #readAll(): Promise<void> {
    const { engine, channels } = this.#parts
    const known = this.#known
    const read = await engine.readAll([...channels.names])
    if (known !== null && !hasChange(read, known)) {
      this.#setAhead(read, [{ name: 'this gateway', position: known }])
      return
    }
    const { records, positions, epochs, revision } = read
    const byKind = Map.groupBy(records, ({ kind }) => kind)
    const { epoch } = this.#positions.last
    const isOther = epoch !== '' && epoch !== positions.last.epoch
    for (const kind of byKind.keys()) this.#keep(kind)
    for (const [kind, own] of this.#kinds)
      own.replace(byKind.get(kind) ?? [], isOther ? Number.POSITIVE_INFINITY : revision)
    this.#positions = positions
    this.#epochs = epochs.map((one) => one.epoch)
    this.#hasRead = true
    this.#confirmFollowed()
  }

  /** Changes that were followed are in the engine; with replicas they may still be lost with the primary. */
  #confirmFollowed(): void {
    const { last } = this.#positions
    if (typeof this.#parts.acknowledge === 'string') this.#confirm(last)
    else this.#known ??= { epoch: last.epoch, revision: 0 }
  }

  #confirm(position: EnginePosition | null): void {
    if (position !== null && position.revision > (this.#known?.revision ?? -1)) this.#known = position
  }

  #storeState(gateways: number): void {
    const { copy, mesh } = this.#parts
    const position = this.#known
    if (copy === null || position === null) return
    const text = JSON.stringify([position, this.#epochs, gateways])
    if (text === this.#storedState) return
    this.#storedState = text
    copy.noteState({ mesh, position, epochs: this.#epochs, gateways })
  }

  #setAhead(state: EngineState, gateways: readonly KnownPosition[]): void {
    const names = gateways.map(({ name }) => name)
    if (names.length > 0 && !this.isDiverged)
      this.#parts.log.error(
        { revision: state.revision, gateways },
        'mesh engine has lost data: serving with what is known; run `weir mesh restore` on the gateway whose records are right',
      )
    else if (names.length === 0 && this.isDiverged) this.#parts.log.info({}, 'mesh engine has all data again')
    this.#ahead = names
  }

  async #follow(): Promise<void> {
    const { engine, channels, log } = this.#parts
    let isFailing = false
    while (!this.#isStopped) {
      try {
        const before = this.#positions
        const { positions, changes, messages, isTrimmed } = await engine.follow(before, FOLLOW_MS)
        isFailing = false
        for (const message of messages) channels.deliver(message)
        if (this.isDiverged) {
          await pause(RETRY_PAUSE_MS)
        } else if (isTrimmed) {
          await this.#readAll()
        } else {
          for (const change of changes) {
            if (change.value !== null) this.#keep(change.kind)
            this.#kinds.get(change.kind)?.apply(change)
          }
          // Unless all records were read meanwhile.
          if (this.#positions === before) this.#positions = positions
          this.#confirmFollowed()
        }
      } catch (error) {
        if (this.#isStopped) return
        if (!isFailing) log.debug({ err: error }, 'changes of the mesh cannot be read')
        isFailing = true
        await pause(RETRY_PAUSE_MS)
      }
    }
  }

  /** Keeps records of a kind that this release may not know. */
  #keep(kind: string): void {
    if (this.#kinds.has(kind) || this.#kinds.size < MAX_KINDS) this.records(kind)
    else this.#parts.log.error({ kind }, 'records of the mesh were ignored: they have too many kinds')
  }
}

/** Whether a change is part of the engine's history. */
function hasChange({ epochs }: EngineState, { epoch, revision }: EnginePosition): boolean {
  return epochs.some((one) => one.epoch === epoch && revision <= one.revision)
}

/** Runs an operation of the engine. @throws mesh_unavailable (503) */
export async function changing<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation()
  } catch (cause) {
    throw meshErrors.mesh_unavailable.with({ cause, ...retryAfter(RETRY_AFTER_SEC) }, messageOf(cause))
  }
}
