/**
 * Admission on one thread: checks the tenant's limits, then the request rate, then the concurrency limit or scheduler,
 * and releases everything when the request ends. Tenant limits come first, so that a tenant over its limit does not
 * use up the shared limits.
 */
import {
  type OpeningGeneration,
  type RequestContext,
  type RequestSlot,
  type RequestStepsService,
  retryAfter,
} from '#kernel'
import { type Allowance, TokenShortage } from './allowance/allowance.ts'
import { AdmissionState, type ConcurrencyLimiter, RETRY_SOON } from './concurrency-limiter.ts'
import type { LimitsConfig } from './config.ts'
import { limitsErrors } from './errors.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import { isCountingTokens, isLimitingTenants } from './limits-settings.ts'
import type { RateLimit } from './rates/rate-limit.ts'
import type { Reservation, TenantLimiter } from './rates/tenant-limiter.ts'
import { tenantOf } from './rates/tenant-name.ts'
import { toRetryAfterSec } from './rates/token-bucket.ts'
import { MAX_RUNNING, type RunningTable } from './running/running-table.ts'

const NO_MODELS: readonly string[] = Object.freeze([])
/** A request with this model name may go to any worker. */
const ANY_MODEL = 'unknown'
/** Estimate used if no token count is available. */
const BYTES_PER_TOKEN = 4
/** Longest wait for tokens while other requests take what is granted, milliseconds. */
const MAX_ASKING_MS = 1_000

/** Model names: rules apply to canonical names, and to every served model if the request names none. */
export interface LimitedModels {
  /** Names of the model that a request names: its canonical one, or the virtual one and the canonical one of its target. */
  named(ctx: RequestContext, model: string): readonly string[]
  /** Ids that workers list; null if a worker serves any model. */
  served(): readonly string[] | null
}

export interface AdmissionParts {
  readonly slot: RequestSlot<AdmissionState>
  readonly models: LimitedModels
  readonly tenants: TenantLimiter
  readonly running: RunningTable
  readonly concurrency: ConcurrencyLimiter
  readonly metrics: LimitsMetrics
  /** Records the time in queues; undefined if nothing does. */
  readonly steps?: RequestStepsService
  /** Monotonic clock that all threads share, in nanoseconds. */
  readonly nowNs: () => bigint
}

export class Admission {
  readonly #parts: AdmissionParts
  #settings: LimitsConfig
  #rates: readonly RateLimit[] = []
  #allowance: Allowance | null = null
  #limitsTenants = false
  #countsTokens = false

  constructor(parts: AdmissionParts, settings: LimitsConfig, rates: readonly RateLimit[]) {
    this.#parts = parts
    this.#settings = settings
    this.setLimits(settings, rates)
  }

  /** @param allowance of limits that gateways share */
  setLimits(settings: LimitsConfig, rates: readonly RateLimit[], allowance: Allowance | null = null): void {
    this.#settings = settings
    this.#rates = rates
    this.#allowance = allowance
    this.#limitsTenants = isLimitingTenants(settings)
    this.#countsTokens = isCountingTokens(settings)
    this.#parts.tenants.update(settings.tenants)
    this.#parts.concurrency.setLimits(settings)
  }

  /** @throws errors of the limits table, 429 and 408 */
  enter(ctx: RequestContext): undefined | Promise<undefined> {
    // `end` has already run and would not release what is taken here.
    if (ctx.isDone || ctx.isFailing) return
    const { slot, concurrency, metrics } = this.#parts
    const state = new AdmissionState(ctx)
    slot.set(ctx, state)
    try {
      if (this.#limitsTenants) this.#countRunning(ctx, state)
      const shortage = this.#take(ctx, state)
      const pending =
        shortage === null ? concurrency.enter(ctx, state) : this.#enterLater(ctx, state, shortage)
      if (pending !== undefined) return this.#count(ctx, state, pending)
      metrics.allowed.inc()
    } catch (error) {
      throw this.#refuse(state, error)
    }
  }

  /**
   * Counts every generation of a tool loop after the first, which `enter` has counted, as a request of the tenant.
   * Tokens are settled at the end, by the usage that the response reports for all generations.
   * @throws tenant_rate_limit_exceeded, shared_limit_busy (429)
   */
  onGeneration(
    ctx: RequestContext,
    { number, model }: Pick<OpeningGeneration, 'number' | 'model'>,
  ): undefined | Promise<void> {
    if (number === 1 || !this.#limitsTenants) return
    const { tenants, nowNs } = this.#parts
    const tenant = tenantOf(ctx, this.#settings.tenants)
    const models = tenants.hasModelRules(tenant) ? this.#modelsNamed(ctx, model) : NO_MODELS
    const take = () => {
      const taken = tenants.reserve(tenant, models, 0, nowNs())
      return taken instanceof TokenShortage ? taken : null
    }
    const shortage = take()
    if (shortage !== null) return this.#ask(shortage, take, () => ctx.isDone)
  }

  /** Releases everything the request holds; idempotent. */
  end(ctx: RequestContext): void {
    const { slot, concurrency, tenants, running, nowNs } = this.#parts
    const state = slot.get(ctx)
    if (state === undefined || state.isOver) return
    state.isOver = true
    const wasWaiting = state.queueEntry !== null || state.isAsking
    concurrency.leave(state)
    if (state.runningRow >= 0) running.release(state.runningRow)
    const { reservation } = state
    if (reservation === null) return
    // Nothing ran for a request that left the queue.
    if (wasWaiting) tenants.refund(reservation, nowNs())
    else if (state.settlesTokens) tenants.settle(reservation, usedTokens(ctx, reservation), nowNs())
  }

  /** Continuations of a request that was admitted count, and are not refused. */
  #countRunning(ctx: RequestContext, state: AdmissionState): void {
    const { tenants, running } = this.#parts
    const tenant = tenantOf(ctx, this.#settings.tenants)
    const limit = tenants.maxRunning(tenant)
    if (limit === null) return
    state.runningRow = running.enter(tenant, ctx.isContinuation ? MAX_RUNNING : limit)
    if (state.runningRow < 0 && !ctx.isContinuation)
      throw limitsErrors.tenant_concurrency_exceeded.with(RETRY_SOON, limit)
  }

  /** Takes what the request still needs. @returns the tokens to ask for */
  #take(ctx: RequestContext, state: AdmissionState): TokenShortage | null {
    if (this.#limitsTenants && state.reservation === null) {
      const reserved = this.#reserve(ctx)
      if (reserved instanceof TokenShortage) return reserved
      state.reservation = reserved
      state.settlesTokens = reserved !== null && this.#countsTokens
    }
    if (ctx.isContinuation) return null
    for (; state.ratesTaken < this.#rates.length; state.ratesTaken++) {
      const rate = this.#rates[state.ratesTaken]
      const wait = rate.take(this.#parts.nowNs())
      if (wait instanceof TokenShortage) return wait
      if (wait > 0n) throw rateError(rate, wait)
    }
    return null
  }

  async #enterLater(ctx: RequestContext, state: AdmissionState, first: TokenShortage): Promise<undefined> {
    state.isAsking = true
    await this.#ask(
      first,
      () => this.#take(ctx, state),
      () => state.isOver,
    )
    if (state.isOver) return
    state.isAsking = false
    return this.#parts.concurrency.enter(ctx, state)
  }

  /**
   * Asks control for tokens until `take` has what it needs, or the request is over.
   * @throws shared_limit_busy (429), exceptions of `take`
   */
  async #ask(first: TokenShortage, take: () => TokenShortage | null, isOver: () => boolean): Promise<void> {
    const sinceMs = performance.now()
    let shortage: TokenShortage | null = first
    while (shortage !== null) {
      await this.#allowance?.wait(shortage.bucket, shortage.tokens)
      if (isOver()) return
      shortage = take()
      if (shortage !== null && performance.now() - sinceMs > MAX_ASKING_MS)
        throw limitsErrors.shared_limit_busy.with(retryAfter(1))
    }
  }

  #reserve(ctx: RequestContext): Reservation | TokenShortage | null {
    const { tenants, nowNs } = this.#parts
    const tenant = tenantOf(ctx, this.#settings.tenants)
    const hasBody = ctx.method === 'POST'
    const models = hasBody && tenants.hasModelRules(tenant) ? this.#modelsNamed(ctx, modelOf(ctx)) : NO_MODELS
    const tokens = hasBody && this.#countsTokens ? Math.ceil(bodyLength(ctx) / BYTES_PER_TOKEN) : 0
    return tenants.reserve(tenant, models, tokens, nowNs(), ctx.isContinuation)
  }

  /** @returns null for any model */
  #modelsNamed(ctx: RequestContext, name: string | null | undefined): readonly string[] | null {
    const { models } = this.#parts
    if (name === undefined) return NO_MODELS
    return name === null || name === '' || name === ANY_MODEL ? models.served() : models.named(ctx, name)
  }

  async #count(ctx: RequestContext, state: AdmissionState, pending: Promise<undefined>): Promise<undefined> {
    const startedAtMs = performance.now()
    const note = (error: string | null) =>
      this.#parts.steps?.note(ctx, {
        kind: 'queue',
        name: 'limits',
        startedAtMs,
        endedAtMs: performance.now(),
        error,
      })
    try {
      await pending
    } catch (error) {
      note(codeOf(error))
      throw this.#refuse(state, error)
    }
    note(null)
    if (!state.isOver) this.#parts.metrics.allowed.inc()
  }

  #refuse(state: AdmissionState, error: unknown): unknown {
    const { metrics, tenants, nowNs } = this.#parts
    if (state.reservation !== null) tenants.refund(state.reservation, nowNs())
    state.reservation = null
    const code = codeOf(error)
    if (Object.hasOwn(limitsErrors, code)) metrics.refused(code)
    return error
  }
}

/** Code of an error of the gateway; empty for another. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function rateError({ perSecond }: RateLimit, waitNs: bigint): Error {
  const seconds = toRetryAfterSec(waitNs)
  return limitsErrors.rate_limit_exceeded.with(retryAfter(seconds), perSecond, seconds)
}

/** Tokens of the usage, reported or estimated, else the prompt estimate plus one per four bytes. Errors use none. */
function usedTokens(ctx: RequestContext, { tokens }: Reservation): number {
  if (ctx.usage !== null) return ctx.usage.input + ctx.usage.output
  if (ctx.status >= 400 && !ctx.isAborted) return 0
  return tokens + Math.ceil(ctx.bytesOut / BYTES_PER_TOKEN)
}

/** Undefined for an invalid body; the handler rejects it. */
function modelOf(ctx: RequestContext): string | null | undefined {
  try {
    return ctx.peek().model
  } catch {
    return undefined
  }
}

/** Prefers content-length, because reading `bodyBytes` keeps the body in memory. */
function bodyLength(ctx: RequestContext): number {
  const announced = Number(ctx.header('content-length'))
  return Number.isInteger(announced) ? announced : ctx.bodyBytes.length
}
