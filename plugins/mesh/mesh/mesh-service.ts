/** The mesh service on control: joins, keeps the records in step with the engine, and passes messages. */
import { createHash } from 'node:crypto'
import {
  type CounterChange,
  type EngineState,
  GatewayError,
  type GlobalRateLimiter,
  type Grant,
  type GrantRequest,
  type Logger,
  MESH_INTAKE,
  type MeshChannel,
  type MeshEngine,
  type MeshMember,
  type MeshService,
  messageOf,
  type Positions,
  retryAfter,
  type SharedConcern,
  type SharedRecords,
} from '#kernel'
import { Channels } from './channels.ts'
import type { MeshConfig } from './config.ts'
import { meshErrors } from './errors.ts'
import { type About, Membership } from './membership.ts'
import { IntakeUse, Records } from './records.ts'
import { Sealing } from './sealing.ts'

/** Longest wait for a change or a message of another gateway. */
const FOLLOW_MS = 5_000
const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000
const RETRY_AFTER_SEC = 2
/** Kinds of records, of other releases too. */
const MAX_KINDS = 64

export interface MeshServiceParts {
  readonly engine: MeshEngine
  readonly isShared: boolean
  readonly name: string
  readonly config: MeshConfig
  readonly about: () => About
  readonly log: Logger
}

export class SharedMesh implements MeshService {
  readonly name: string
  readonly isShared: boolean
  readonly membership: Membership
  readonly #parts: MeshServiceParts
  readonly #sealing: Sealing
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own type, which only its owner knows
  readonly #kinds = new Map<string, Records<any>>()
  readonly #intake = new IntakeUse()
  readonly #channels: Channels
  /** Of modules that gateways have, by hash: an engine that has lost them gets them back from here. */
  readonly #blobs = new Map<string, Buffer>()
  #rateLimiter: GlobalRateLimiter | null = null
  #positions: Positions = { log: '0-0', revision: 0, channels: new Map() }
  #dataSet: string | null = null
  #dataSets: readonly string[] = []
  #isDiverged = false
  #isStarted = false
  #isStopped = false
  #following: Promise<void> | null = null
  #reading: Promise<void> | null = null
  /** Revision of the engine at the last renewal that the change log had not reached. */
  #behindSince: number | null = null
  /** Of the engine, at the last renewal. */
  #engineRevision = 0
  conflicts = 0

  constructor(parts: MeshServiceParts) {
    const { engine, name, config, about, log } = parts
    this.#parts = parts
    this.name = name
    this.isShared = parts.isShared
    this.#sealing = new Sealing(config.secret, config.mesh)
    this.#channels = new Channels({
      engine,
      name,
      isOpen: () => parts.isShared && this.membership.problem === null,
      log,
    })
    this.membership = new Membership({
      engine,
      name,
      mesh: config.mesh,
      about,
      onState: (state, isNew) => this.#onState(state, isNew),
      log,
    })
  }

  get members(): readonly MeshMember[] {
    return this.membership.members
  }

  get revision(): number {
    return this.#positions.revision
  }

  /** Changes that the engine has and this gateway has not, at the last renewal. */
  get lag(): number {
    return Math.max(0, this.#engineRevision - this.#positions.revision)
  }

  /** Messages since the start. */
  get messages(): Channels['counts'] {
    return this.#channels.counts
  }

  get isDiverged(): boolean {
    return this.#isDiverged
  }

  shares(concern: SharedConcern): boolean {
    return this.isShared && this.#parts.config.shares[concern]
  }

  onMembers(listener: (members: readonly MeshMember[]) => void): void {
    this.membership.onMembers(listener)
  }

  get limitShares(): number {
    if (this.#parts.config.whenAlone === 'full') return 1
    return Math.max(1, this.members.filter(({ status }) => status !== 'Down').length)
  }

  problem(): string | null {
    return this.#isDiverged ? 'the mesh engine has lost data' : this.membership.problem
  }

  async checkChangeable(): Promise<void> {
    this.#refuseDiverged()
    await this.grant([])
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
      records.isLive = this.#isStarted
      this.#kinds.set(kind, records)
    }
    return records
  }

  /** Number of records of a kind, for the status. */
  count(kind: string): number {
    return this.#kinds.get(kind)?.all.size ?? 0
  }

  channel(name: string): MeshChannel {
    return this.#channels.open(name)
  }

  /** @throws mesh_engine_unreachable, mesh_name_taken, mesh_secret_missing */
  async start(): Promise<void> {
    const { engine, config, isShared } = this.#parts
    if (isShared && config.secret === null) throw meshErrors.mesh_secret_missing()
    try {
      await engine.connect(isShared && config.acknowledge === 'disk')
      await this.membership.join()
      await this.#reading
      if (this.#dataSet === null) await this.#readAll()
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw meshErrors.mesh_engine_unreachable.with({ cause }, engine.kind, messageOf(cause))
    }
    this.#isStarted = true
    for (const records of this.#kinds.values()) records.isLive = true
    this.#following = this.#follow()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.membership.leave()
    await this.#parts.engine.close()
    await this.#following
  }

  async grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    return this.#changing(() => this.#parts.engine.grant(requests))
  }

  async addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]> {
    return this.#changing(() => this.#parts.engine.addToCounters(writer, sequence, changes))
  }

  limitGlobalRate(limiter: GlobalRateLimiter): void {
    this.#rateLimiter = limiter
  }

  /** @throws rate_limit_not_enforced (503) */
  rateLimiter(): GlobalRateLimiter {
    if (this.#rateLimiter === null) throw meshErrors.rate_limit_not_enforced()
    return this.#rateLimiter
  }

  seal(secret: string, context: string): string {
    return this.#sealing.seal(secret, context)
  }

  open(sealed: string, context: string): string {
    return this.#sealing.open(sealed, context)
  }

  /** Key of digests that all gateways of the mesh compute alike; null without a secret. */
  digestKey(purpose: string): Buffer | null {
    return this.#parts.config.secret === null ? null : this.#sealing.keyFor(purpose)
  }

  async putBlob(bytes: Buffer): Promise<string> {
    const { blobBytes } = MESH_INTAKE
    if (bytes.length > blobBytes) throw meshErrors.mesh_record_too_large(bytes.length, blobBytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await this.#changing(() => this.#parts.engine.putBlob(sha256, bytes))
    this.#blobs.set(sha256, bytes)
    return sha256
  }

  async readBlob(sha256: string): Promise<Buffer | null> {
    const bytes = await this.#changing(() => this.#parts.engine.readBlob(sha256))
    if (bytes === null) return null
    if (createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw meshErrors.mesh_blob_damaged(sha256)
    this.#blobs.set(sha256, bytes)
    return bytes
  }

  async removeBlob(sha256: string): Promise<void> {
    this.#blobs.delete(sha256)
    await this.#changing(() => this.#parts.engine.removeBlob(sha256))
  }

  /** Writes records and blobs of this gateway into an engine that has lost them. Records added to it since are lost. @returns what was written */
  async restore(): Promise<{ records: number; blobs: number }> {
    const records = [...this.#kinds.values()].flatMap(({ kind, all }) =>
      [...all].map(([id, { revision, value }]) => ({ kind, id, revision, value: JSON.stringify(value) })),
    )
    const { revision } = this.#positions
    const { engine } = this.#parts
    const blobs = [...this.#blobs]
    await this.#changing(async () => {
      // Before the records that refer to them.
      for (const [sha256, bytes] of blobs) await engine.putBlob(sha256, bytes)
      await engine.restore(records, this.#dataSets, revision)
    })
    await this.#readAll()
    return { records: records.length, blobs: blobs.length }
  }

  async #write(
    change: Parameters<MeshEngine['write']>[0],
  ): Promise<Awaited<ReturnType<MeshEngine['write']>>> {
    this.#refuseDiverged()
    const isDurable = this.isShared && this.#parts.config.acknowledge === 'disk'
    const done = await this.#changing(() => this.#parts.engine.write(change, isDurable))
    if ('conflict' in done) this.conflicts++
    return done
  }

  #refuseDiverged(): void {
    if (this.#isDiverged) throw meshErrors.mesh_diverged.with(retryAfter(RETRY_AFTER_SEC))
  }

  async #changing<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation()
    } catch (cause) {
      throw meshErrors.mesh_unavailable.with({ cause, ...retryAfter(RETRY_AFTER_SEC) }, messageOf(cause))
    }
  }

  /** @param isNew this gateway has joined, for the first time or anew */
  #onState(state: EngineState, isNew: boolean): void {
    this.#engineRevision = state.revision
    const known = this.#dataSet
    const isKnown = known === null || state.dataSet === known
    const isRestored = known !== null && state.earlierDataSets.includes(known)
    const isLost = (!isKnown && !isRestored) || (isKnown && state.revision < this.#positions.revision)
    if (isLost && !this.#isDiverged)
      this.#parts.log.error(
        { revision: state.revision, expected: this.#positions.revision },
        'mesh engine has lost data: serving with what is known; run `weir mesh restore` on the gateway whose records are right',
      )
    this.#isDiverged = isLost
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

  async #readAll(): Promise<void> {
    const { records, positions, dataSet, earlierDataSets, revision } = await this.#parts.engine.readAll([
      ...this.#channels.names,
    ])
    const byKind = Map.groupBy(records, ({ kind }) => kind)
    const isOther = this.#dataSet !== null && this.#dataSet !== dataSet
    for (const kind of byKind.keys()) this.#keep(kind)
    for (const [kind, own] of this.#kinds)
      own.replace(byKind.get(kind) ?? [], isOther ? Number.POSITIVE_INFINITY : revision)
    this.#positions = positions
    this.#dataSet = dataSet
    this.#dataSets = [dataSet, ...earlierDataSets]
    this.#isDiverged = false
  }

  async #follow(): Promise<void> {
    let pauseMs = 0
    while (!this.#isStopped) {
      try {
        const before = this.#positions
        const { positions, changes, messages, isTrimmed } = await this.#parts.engine.follow(before, FOLLOW_MS)
        pauseMs = 0
        for (const message of messages) this.#channels.deliver(message)
        if (this.#isDiverged) {
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
        if (pauseMs === 0) this.#parts.log.debug({ err: error }, 'changes of the mesh cannot be read')
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
