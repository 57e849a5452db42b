/** The records of all kinds as the engine has them: reads them, follows its change log, and detects that it has lost data. */
import { setTimeout as pause } from 'node:timers/promises'
import {
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
import { IntakeUse, Records, type WriteRecord } from './records.ts'

/** Longest wait for a change or a message of another gateway. */
const FOLLOW_MS = 5_000
const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000
const RETRY_AFTER_SEC = 2
/** Kinds of records, of other releases too. */
const MAX_KINDS = 64

interface EngineDataParts {
  readonly engine: MeshEngine
  /** Receive the messages that arrive with the changes. */
  readonly channels: Channels
  /** Writes wait for the engine's disk. */
  readonly isDurable: boolean
  readonly log: Logger
}

export class EngineData {
  readonly #parts: EngineDataParts
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own type, which only its owner knows
  readonly #kinds = new Map<string, Records<any>>()
  readonly #intake = new IntakeUse()
  #positions: Positions = { log: '0-0', revision: 0, channels: new Map() }
  #dataSet: string | null = null
  #dataSets: readonly string[] = []
  #isLive = false
  #isStopped = false
  #following: Promise<void> | null = null
  #reading: Promise<void> | null = null
  /** Revision of the engine at the last renewal that the change log had not reached. */
  #behindSince: number | null = null
  /** Of the engine, at the last renewal. */
  #engineRevision = 0
  /** The engine lacks data that this gateway has. */
  isDiverged = false
  /** Changes that were applied anew. */
  conflicts = 0

  constructor(parts: EngineDataParts) {
    this.#parts = parts
  }

  /** Of the last change that this gateway has applied. */
  get revision(): number {
    return this.#positions.revision
  }

  /** Changes that the engine has and this gateway has not, at the last renewal. */
  get lag(): number {
    return Math.max(0, this.#engineRevision - this.#positions.revision)
  }

  records<T>(kind: string): SharedRecords<T> {
    let records = this.#kinds.get(kind)
    if (records === undefined) {
      records = new Records<T>(kind, {
        write: (change) => this.#write(change),
        onError: (err) =>
          this.#parts.log.error({ err, kind }, 'change of a mesh record could not be applied'),
        intake: this.#intake,
      })
      records.isLive = this.#isLive
      this.#kinds.set(kind, records)
    }
    return records
  }

  /** Number of records of a kind, for the status. */
  count(kind: string): number {
    return this.#kinds.get(kind)?.all.size ?? 0
  }

  /** Reads all records, unless joining has read them, and follows changes from then on. */
  async start(): Promise<void> {
    await this.#reading
    if (this.#dataSet === null) await this.#readAll()
    this.#isLive = true
    for (const records of this.#kinds.values()) records.isLive = true
    this.#following = this.#follow()
  }

  /** Call before the engine is closed, which ends the last read. @returns resolves after it */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#following
  }

  /** Call after each renewal. @param isNew this gateway has joined, for the first time or anew */
  onState(state: EngineState, isNew: boolean): void {
    this.#engineRevision = state.revision
    const known = this.#dataSet
    const isKnown = known === null || state.dataSet === known
    const isRestored = known !== null && state.earlierDataSets.includes(known)
    const isLost = (!isKnown && !isRestored) || (isKnown && state.revision < this.#positions.revision)
    if (isLost && !this.isDiverged)
      this.#parts.log.error(
        { revision: state.revision, expected: this.#positions.revision },
        'mesh engine has lost data: serving with what is known; run `weir mesh restore` on the gateway whose records are right',
      )
    this.isDiverged = isLost
    if (isLost) return
    // The change log is read within milliseconds: a renewal later something is missing.
    const isBehind = this.#behindSince !== null && this.#positions.revision < this.#behindSince
    this.#behindSince = state.revision > this.#positions.revision ? state.revision : null
    if (!isNew && !isRestored && !isBehind) return
    this.#reading ??= this.#readAll()
      .catch((err: unknown) => this.#parts.log.warn({ err }, 'mesh records could not be read'))
      .finally(() => {
        this.#reading = null
      })
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
    const { revision } = this.#positions
    const { engine } = this.#parts
    const given = [...blobs]
    await changing(async () => {
      // Before the records that refer to them.
      for (const [sha256, bytes] of given) await engine.putBlob(sha256, bytes)
      await engine.restore(records, this.#dataSets, revision)
    })
    await this.#readAll()
    return { records: records.length, blobs: given.length }
  }

  async #write(change: Parameters<WriteRecord>[0]): ReturnType<WriteRecord> {
    this.refuseDiverged()
    const { engine, isDurable } = this.#parts
    const done = await changing(() => engine.write(change, isDurable))
    if ('conflict' in done) this.conflicts++
    return done
  }

  async #readAll(): Promise<void> {
    const { engine, channels } = this.#parts
    const { records, positions, dataSet, earlierDataSets, revision } = await engine.readAll([
      ...channels.names,
    ])
    const byKind = Map.groupBy(records, ({ kind }) => kind)
    const isOther = this.#dataSet !== null && this.#dataSet !== dataSet
    for (const kind of byKind.keys()) this.#keep(kind)
    for (const [kind, own] of this.#kinds)
      own.replace(byKind.get(kind) ?? [], isOther ? Number.POSITIVE_INFINITY : revision)
    this.#positions = positions
    this.#dataSet = dataSet
    this.#dataSets = [dataSet, ...earlierDataSets]
    this.isDiverged = false
  }

  async #follow(): Promise<void> {
    const { engine, channels, log } = this.#parts
    let pauseMs = 0
    while (!this.#isStopped) {
      try {
        const before = this.#positions
        const { positions, changes, messages, isTrimmed } = await engine.follow(before, FOLLOW_MS)
        pauseMs = 0
        for (const message of messages) channels.deliver(message)
        if (this.isDiverged) {
          await pause(FIRST_PAUSE_MS)
        } else if (isTrimmed) {
          await this.#readAll()
        } else {
          for (const change of changes) {
            if (change.value !== null) this.#keep(change.kind)
            this.#kinds.get(change.kind)?.apply(change)
          }
          // Unless all records were read meanwhile.
          if (this.#positions === before) this.#positions = positions
        }
      } catch (error) {
        if (this.#isStopped) return
        if (pauseMs === 0) log.debug({ err: error }, 'changes of the mesh cannot be read')
        pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2 || FIRST_PAUSE_MS)
        await pause(pauseMs)
      }
    }
  }

  /** Keeps records of a kind that this release may not know. */
  #keep(kind: string): void {
    if (this.#kinds.has(kind) || this.#kinds.size < MAX_KINDS) this.records(kind)
    else this.#parts.log.error({ kind }, 'records of the mesh were ignored: they have too many kinds')
  }
}

/** Runs an operation of the engine. @throws mesh_unavailable (503) */
export async function changing<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation()
  } catch (cause) {
    throw meshErrors.mesh_unavailable.with({ cause, ...retryAfter(RETRY_AFTER_SEC) }, messageOf(cause))
  }
}
