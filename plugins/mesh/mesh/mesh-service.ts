/** The mesh service on control: joins the mesh, and gives plugins its records, messages, grants and blobs. */
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type CounterChange,
  EngineUnreachable,
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
  type SharedConcern,
  type SharedRecords,
  type StoreService,
} from '#kernel'
import { Channels } from './channels.ts'
import type { MeshConfig } from './config.ts'
import { changing, EngineData } from './engine-data.ts'
import { meshErrors } from './errors.ts'
import { type About, Membership } from './membership.ts'
import { RecordCopy } from './record-copy.ts'
import type { IsValid } from './records.ts'
import { Sealing } from './sealing.ts'

/** Between attempts to join after a start without the engine. */
const JOIN_RETRY_MS = 1_000

interface MeshServiceParts {
  readonly engine: MeshEngine
  /** Null without a local store. */
  readonly store: StoreService | null
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
  readonly data: EngineData
  readonly #parts: MeshServiceParts
  readonly #sealing: Sealing
  readonly #channels: Channels
  /** Of modules that gateways have, by hash: an engine that has lost them gets them back from here. */
  readonly #blobs = new Map<string, Buffer>()
  #rateLimiter: GlobalRateLimiter | null = null
  /** Gateways before the last stop, until this one has joined. */
  #lastGateways = 1
  #joining: Promise<void> | null = null
  readonly #stopping = new AbortController()

  constructor(parts: MeshServiceParts) {
    const { engine, name, config, about, log } = parts
    const { mesh } = config
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
    this.data = new EngineData({
      engine,
      channels: this.#channels,
      acknowledge: config.acknowledge,
      copy: parts.isShared && parts.store !== null ? new RecordCopy({ store: parts.store, mesh, log }) : null,
      mesh,
      log,
    })
    this.membership = new Membership({
      engine,
      name,
      mesh,
      about,
      onState: (state, isNew, gateways) => this.data.onState(state, isNew, gateways),
      log,
    })
  }

  get members(): readonly MeshMember[] {
    return this.membership.members
  }

  /** Messages since the start. */
  get messages(): Channels['counts'] {
    return this.#channels.counts
  }

  shares(concern: SharedConcern): boolean {
    return this.isShared && this.#parts.config.shares[concern]
  }

  onMembers(listener: (members: readonly MeshMember[]) => void): void {
    this.membership.onMembers(listener)
  }

  get limitShares(): number {
    if (this.#parts.config.whenAlone === 'full') return 1
    const living = this.members.filter(({ status }) => status !== 'Down').length
    return Math.max(1, living || this.#lastGateways)
  }

  problem(): string | null {
    return this.data.isDiverged ? 'the mesh engine has lost data' : this.membership.problem
  }

  async checkChangeable(): Promise<void> {
    this.data.refuseDiverged()
    await this.grant([])
  }

  records<T>(kind: string, isValid?: IsValid): SharedRecords<T> {
    return this.data.records(kind, isValid)
  }

  channel(name: string): MeshChannel {
    return this.#channels.open(name)
  }

  /** @throws mesh_engine_unreachable, mesh_name_taken, mesh_secret_missing */
  async start(): Promise<void> {
    const { engine, config, isShared, log } = this.#parts
    if (isShared && config.secret === null) throw meshErrors.mesh_secret_missing()
    const stored = await this.data.load()
    this.#lastGateways = stored?.gateways ?? 1
    try {
      await engine.connect(config.acknowledge)
      await this.#join()
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      if (config.requireAtStart || !(cause instanceof EngineUnreachable))
        throw meshErrors.mesh_engine_unreachable.with({ cause }, engine.kind, messageOf(cause))
      this.membership.fail(cause)
      log.warn(
        { mesh: config.mesh, records: this.data.size, hasStore: this.#parts.store !== null },
        'mesh engine unreachable at the start; serving with the records that were stored last',
      )
      this.data.goLive()
      this.#joining = this.#joinLater()
    }
  }

  async #join(): Promise<void> {
    await this.membership.join()
    await this.data.start()
  }

  async #joinLater(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await pause(JOIN_RETRY_MS, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      try {
        return await this.#join()
      } catch (error) {
        this.membership.fail(error)
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    const ended = this.data.stop()
    await this.membership.leave()
    await this.#parts.engine.close()
    await this.#joining
    await ended
  }

  async grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    return changing(() => this.#parts.engine.grant(requests))
  }

  async addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]> {
    return changing(() => this.#parts.engine.addToCounters(writer, sequence, changes))
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
    await changing(() => this.#parts.engine.putBlob(sha256, bytes))
    this.#blobs.set(sha256, bytes)
    return sha256
  }

  async readBlob(sha256: string): Promise<Buffer | null> {
    const bytes = await changing(() => this.#parts.engine.readBlob(sha256))
    if (bytes === null) return null
    if (createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw meshErrors.mesh_blob_damaged(sha256)
    this.#blobs.set(sha256, bytes)
    return bytes
  }

  async removeBlob(sha256: string): Promise<void> {
    this.#blobs.delete(sha256)
    await changing(() => this.#parts.engine.removeBlob(sha256))
  }

  /** Writes records and blobs of this gateway into an engine that has lost them. @returns what was written */
  restore(): Promise<{ records: number; blobs: number }> {
    return this.data.restore(this.#blobs)
  }
}
