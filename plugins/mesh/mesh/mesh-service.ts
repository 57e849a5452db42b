/** The mesh service on control: joins the mesh, and gives plugins its records, messages, grants and blobs. */
import { createHash } from 'node:crypto'
import {
  type CounterChange,
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
} from '#kernel'
import { Channels } from './channels.ts'
import type { MeshConfig } from './config.ts'
import { changing, EngineData } from './engine-data.ts'
import { meshErrors } from './errors.ts'
import { type About, Membership } from './membership.ts'
import { Sealing } from './sealing.ts'

interface MeshServiceParts {
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
  readonly data: EngineData
  readonly #parts: MeshServiceParts
  readonly #sealing: Sealing
  readonly #channels: Channels
  /** Of modules that gateways have, by hash: an engine that has lost them gets them back from here. */
  readonly #blobs = new Map<string, Buffer>()
  #rateLimiter: GlobalRateLimiter | null = null

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
    this.data = new EngineData({
      engine,
      channels: this.#channels,
      isDurable: parts.isShared && config.acknowledge === 'disk',
      log,
    })
    this.membership = new Membership({
      engine,
      name,
      mesh: config.mesh,
      about,
      onState: (state, isNew) => this.data.onState(state, isNew),
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
    return Math.max(1, this.members.filter(({ status }) => status !== 'Down').length)
  }

  problem(): string | null {
    return this.data.isDiverged ? 'the mesh engine has lost data' : this.membership.problem
  }

  async checkChangeable(): Promise<void> {
    this.data.refuseDiverged()
    await this.grant([])
  }

  records<T>(kind: string): SharedRecords<T> {
    return this.data.records(kind)
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
      await this.data.start()
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw meshErrors.mesh_engine_unreachable.with({ cause }, engine.kind, messageOf(cause))
    }
  }

  async stop(): Promise<void> {
    const ended = this.data.stop()
    await this.membership.leave()
    await this.#parts.engine.close()
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
