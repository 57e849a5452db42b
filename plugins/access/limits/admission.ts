/**
 * Admission of one thread: tenant limits, then the rate, then a turn; and at the end everything is given back.
 * The cheapest and fairest question comes first, so that a tenant over its limit uses up nothing that others need.
 */
import type { GenerationNotice, RequestContext, RequestSlot } from '#kernel'
import { type BucketSize, bucketPerSecond, takeTokens, toRetryAfterSec } from './bucket.ts'
import type { LimitsConfig } from './config.ts'
import { limitsErrors, retryAfter } from './errors.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import { isCountingTokens, isLimitingTenants } from './limits-settings.ts'
import { Stay } from './stay.ts'
import type { Reservation, TenantLimiter } from './tenant-limiter.ts'
import { tenantOf } from './tenant-name.ts'
import type { Turnstile } from './turnstile.ts'
import { ReplyUsage } from './usage.ts'

const NO_MODELS: readonly string[] = Object.freeze([])
/** Stands for "any worker". */
const ANY_MODEL = 'unknown'
/** Bytes of JSON that stand for a token where nobody counted. */
const BYTES_PER_TOKEN = 4

/** What is known of models: a rule holds for a model by whatever name, and where none is named, for all that may serve. */
export interface LimitedModels {
  canonical(model: string): string
  /** Ids that workers name; null when a worker serves any. */
  served(): readonly string[] | null
}

export interface AdmissionParts {
  readonly slot: RequestSlot<Stay>
  readonly models: LimitedModels
  /** One word, the bucket of all requests. */
  readonly rate: BigInt64Array
  readonly tenants: TenantLimiter
  readonly turnstile: Turnstile
  readonly metrics: LimitsMetrics
  /** Monotonic and the same on all threads, nanoseconds. */
  readonly nowNs: () => bigint
}

export class Admission {
  readonly #parts: AdmissionParts
  #settings: LimitsConfig
  #rate: BucketSize | null = null
  #limitsTenants = false
  #countsTokens = false

  constructor(parts: AdmissionParts, settings: LimitsConfig) {
    this.#parts = parts
    this.#settings = settings
    this.setLimits(settings)
  }

  setLimits(settings: LimitsConfig): void {
    this.#settings = settings
    this.#rate = rateOf(settings)
    this.#limitsTenants = isLimitingTenants(settings)
    this.#countsTokens = isCountingTokens(settings)
    this.#parts.tenants.update(settings.tenants)
    this.#parts.turnstile.setLimits(settings)
  }

  /** @throws the refusals of the error table, 429 and 408 */
  enter(ctx: RequestContext): undefined | Promise<undefined> {
    // It would hold what nobody gives back: its end has been.
    if (ctx.isDone || ctx.isFailing) return
    const { slot, turnstile, metrics } = this.#parts
    const stay = new Stay(ctx)
    slot.set(ctx, stay)
    try {
      stay.reservation = this.#limitsTenants ? this.#reserve(ctx) : null
      if (stay.reservation !== null && this.#countsTokens) stay.usage = new ReplyUsage()
      if (this.#rate !== null) this.#takeRate(this.#rate)
      const pending = turnstile.enter(ctx, stay)
      if (pending !== undefined) return this.#count(stay, pending)
      metrics.allowed.inc()
    } catch (error) {
      throw this.#refuse(stay, error)
    }
  }

  /**
   * Takes a request from the tenant's limits for every generation after the first, which `enter` has taken. Tokens are
   * settled at the end, by what the reply says of all of them.
   * @throws tenant_rate_limit_exceeded (429)
   */
  onGeneration(ctx: RequestContext, { number, model }: GenerationNotice): void {
    if (number === 1 || !this.#limitsTenants) return
    const { tenants, nowNs } = this.#parts
    const tenant = tenantOf(ctx, this.#settings.tenants)
    const models = tenants.hasModelRules(tenant) ? this.#modelsNamed(model) : NO_MODELS
    tenants.reserve(tenant, models, 0, nowNs())
  }

  /** One piece of an event stream or another streamed body. */
  onChunk(ctx: RequestContext, chunk: Buffer): void {
    this.#parts.slot.get(ctx)?.usage?.readEvents(chunk)
  }

  /** A whole reply, as far as it was short enough to be held. */
  onReply(ctx: RequestContext, body: Buffer | null): void {
    if (body !== null) this.#parts.slot.get(ctx)?.usage?.read(body)
  }

  /** Whatever happened; a request that never came to `enter` holds nothing. */
  end(ctx: RequestContext): void {
    const { slot, turnstile, tenants, nowNs } = this.#parts
    const stay = slot.get(ctx)
    if (stay === undefined || stay.isOver) return
    stay.isOver = true
    const isWaiting = stay.waiting !== null
    turnstile.leave(stay)
    const { reservation } = stay
    if (reservation === null) return
    // It left the queue: nothing was done for it.
    if (isWaiting) tenants.refund(reservation, nowNs())
    else if (stay.usage !== null)
      tenants.settle(reservation, usedTokens(ctx, stay.usage, reservation), nowNs())
  }

  #reserve(ctx: RequestContext): Reservation | null {
    const { tenants, nowNs } = this.#parts
    const tenant = tenantOf(ctx, this.#settings.tenants)
    const hasBody = ctx.method === 'POST'
    const models = hasBody && tenants.hasModelRules(tenant) ? this.#modelsNamed(modelOf(ctx)) : NO_MODELS
    const tokens = hasBody && this.#countsTokens ? Math.ceil(bodyLength(ctx) / BYTES_PER_TOKEN) : 0
    return tenants.reserve(tenant, models, tokens, nowNs())
  }

  /** Null for any. */
  #modelsNamed(name: string | null | undefined): readonly string[] | null {
    const { models } = this.#parts
    if (name === undefined) return NO_MODELS
    return name === null || name === '' || name === ANY_MODEL ? models.served() : [models.canonical(name)]
  }

  #takeRate(size: BucketSize): void {
    const waitNs = takeTokens(this.#parts.rate, 0, size, 1, this.#parts.nowNs())
    if (waitNs === 0n) return
    const seconds = toRetryAfterSec(waitNs)
    const { requestsPerSecond } = this.#settings
    throw limitsErrors.rate_limit_exceeded.with(retryAfter(seconds), requestsPerSecond, seconds)
  }

  async #count(stay: Stay, pending: Promise<undefined>): Promise<undefined> {
    try {
      await pending
    } catch (error) {
      throw this.#refuse(stay, error)
    }
    if (!stay.isOver) this.#parts.metrics.allowed.inc()
  }

  #refuse(stay: Stay, error: unknown): unknown {
    const { metrics, tenants, nowNs } = this.#parts
    if (stay.reservation !== null) tenants.refund(stay.reservation, nowNs())
    stay.reservation = null
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (Object.hasOwn(limitsErrors, code)) metrics.refused(code)
    return error
  }
}

export function rateOf({ requestsPerSecond, burst }: LimitsConfig): BucketSize | null {
  if (requestsPerSecond <= 0) return null
  return bucketPerSecond(requestsPerSecond, burst > 0 ? burst : Math.max(1, Math.ceil(requestsPerSecond)))
}

/** What the reply said; else the prompt's estimate and one token an event or per four bytes. A refusal used nothing. */
function usedTokens(ctx: RequestContext, usage: ReplyUsage, { tokens }: Reservation): number {
  if (usage.tokens >= 0) return usage.tokens
  if (ctx.status >= 400 && !ctx.isAborted) return 0
  return tokens + (usage.events > 0 ? usage.events : Math.ceil(ctx.bytesOut / BYTES_PER_TOKEN))
}

/** Undefined where the body is none that could name one: that is for the handler to say. */
function modelOf(ctx: RequestContext): string | null | undefined {
  try {
    return ctx.peek().model
  } catch {
    return undefined
  }
}

/** The announced length where there is one: asking for the body would keep its memory. */
function bodyLength(ctx: RequestContext): number {
  const announced = Number(ctx.header('content-length'))
  return Number.isInteger(announced) ? announced : ctx.bodyBytes.length
}
