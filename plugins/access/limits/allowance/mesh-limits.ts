/** Limits that gateways share, on control: the global limit, changed settings, and the grants of tokens. */
import {
  type Grant,
  type GrantRequest,
  type Host,
  isObject,
  type MeshService,
  type SharedRecords,
} from '#kernel'
import type { LimitsConfig } from '../config.ts'
import { limitsErrors } from '../errors.ts'
import { declareGrantMetrics, type GrantMetrics } from '../limits-metrics.ts'
import { changedLimits, type LimitsChange, LimitsReplica, readLimits } from '../limits-settings.ts'
import { AskTokens, GLOBAL_BUCKET, LimitSharingReplica, ReadTokens, rateBucket } from './allowance.ts'
import type { AllowanceMemory } from './allowance-memory.ts'
import { TokenGrants } from './token-grants.ts'

/** Records of the kind `limits`. */
const GLOBAL = 'global'
const SETTINGS = 'settings'

export class MeshLimits {
  readonly #host: Host
  readonly #mesh: MeshService
  readonly #records: SharedRecords<unknown>
  readonly #memory: AllowanceMemory
  readonly #grants: TokenGrants
  /** Current settings of this gateway. */
  readonly #settings: () => LimitsConfig
  readonly #metrics: GrantMetrics
  #publishing: Promise<void> = Promise.resolve()

  /** Call in `register`. */
  constructor(
    host: Host,
    mesh: MeshService,
    memory: AllowanceMemory,
    nowMs: () => number,
    settings: () => LimitsConfig,
  ) {
    this.#host = host
    this.#mesh = mesh
    this.#memory = memory
    this.#settings = settings
    this.#metrics = declareGrantMetrics(host, () => memory.shares > 0)
    this.#records = mesh.records('limits')
    this.#grants = new TokenGrants({
      memory,
      grant: (requests) => this.#grant(requests),
      shares: () => mesh.limitShares,
      nowMs,
    })
    this.#records.watch((id) => {
      this.#publishing = this.#publish(id)
    })
    host.onCommand(AskTokens, (needs) => this.#grants.ask(needs))
    host.onCommand(ReadTokens, async (buckets) => {
      const found = await this.#grants.left(buckets).catch(() => null)
      return found?.map(({ left, held }) => left + held) ?? null
    })
    mesh.limitGlobalRate({
      read: async () => {
        const limitPerSecond = this.#globalPerSecond()
        return { limitPerSecond, count: await this.#count(limitPerSecond ?? 0) }
      },
      set: async (perSecond) => {
        await this.#records.change(GLOBAL, () => ({ perSecond }))
        await this.#publishing
      },
    })
  }

  get isShared(): boolean {
    return this.#mesh.shares('limits')
  }

  /** @throws burst_not_shared (400) for settings that have no effect on shared limits */
  check({ burst }: LimitsConfig): void {
    if (this.isShared && burst > 0) throw limitsErrors.burst_not_shared.with({ param: 'burst' }, burst)
  }

  async start(): Promise<void> {
    await this.#publish(GLOBAL)
    if (this.#records.all.has(SETTINGS)) await this.#publish(SETTINGS)
  }

  stop(): Promise<void> {
    return this.#grants.stop()
  }

  /** Changes the settings of all gateways. @throws invalid_limits, burst_not_shared (400), mesh_unavailable (503) */
  async change(change: LimitsChange): Promise<void> {
    await this.#records.change(SETTINGS, (current) => {
      const next = changedLimits(this.#readSettings(current) ?? this.#settings(), change)
      this.check(next)
      return next
    })
    await this.#publishing
  }

  /** Each gateway returns to the settings of its configuration. */
  async reset(): Promise<void> {
    await this.#records.change(SETTINGS, () => undefined)
    await this.#publishing
  }

  async #grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    try {
      const grants = await this.#mesh.grant(requests)
      this.#metrics.answered.inc()
      return grants
    } catch (error) {
      this.#metrics.failed.inc()
      throw error
    }
  }

  async #publish(id: string): Promise<void> {
    const { isShared } = this
    if (id === GLOBAL) {
      const perSecond = this.#globalPerSecond() ?? 0
      await this.#host.publish(LimitSharingReplica, {
        globalPerSecond: perSecond > 0 ? perSecond : null,
        isShared,
      })
    } else if (id === SETTINGS && isShared) {
      await this.#host.publish(LimitsReplica, this.#readSettings(this.#records.all.get(id)?.value))
    }
  }

  /** A record of another gateway may be of another release. */
  #globalPerSecond(): number | null {
    const value = this.#records.all.get(GLOBAL)?.value
    const perSecond = isObject(value) ? value.perSecond : null
    return Number.isSafeInteger(perSecond) ? Number(perSecond) : null
  }

  /** Null without valid ones; then the configuration applies. */
  #readSettings(value: unknown): LimitsConfig | null {
    if (value === undefined) return null
    try {
      return readLimits(value, this.#settings())
    } catch (err) {
      this.#host.log.warn({ err }, 'limits of another gateway are not valid here and were ignored')
      return null
    }
  }

  async #count(limit: number): Promise<number> {
    if (limit === 0 || this.#memory.shares > 0) return 0
    try {
      const { facts } = rateBucket(GLOBAL_BUCKET, limit)
      const [{ left, held }] = await this.#grants.left([facts])
      return Math.max(0, facts.limit - left - held)
    } catch {
      // Not known while the engine is away.
      return 0
    }
  }
}
