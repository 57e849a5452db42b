/** Request and token limits of tenants: takes from every bucket that applies or from none, settles at the end. */

import { retryAfter } from '#kernel'
import { toTenant } from '#shared'
import { type Allowance, type BucketFacts, SharedBucket, TokenShortage } from '../allowance/allowance.ts'
import type { LimitsConfig, ModelRule, TenantLimits } from '../config.ts'
import { limitsErrors } from '../errors.ts'
import { type BucketKey, type BucketTable, bucketKey } from './bucket-table.ts'
import {
  type BucketSize,
  bucketPerMinute,
  bucketWaitNs,
  chargeTokens,
  takeTokens,
  tokensLeft,
  toRetryAfterSec,
} from './token-bucket.ts'

/** Cached tenant and model combinations; the cache is cleared when it is full. */
const MAX_KNOWN = 4_096
const MINUTE_SEC = 60
const MINUTE_MS = 60_000

/** One bucket that applies to a request. */
interface Scope {
  readonly key: BucketKey
  readonly size: BucketSize
  readonly unit: 'requests' | 'tokens'
  /** Null for the limit of the tenant. */
  readonly ruleId: string | null
  /** Made when gateways share the limit. */
  shared: SharedBucket | null
}

/** What one request has taken from its buckets. */
export interface Reservation {
  readonly scopes: readonly Scope[]
  readonly tokens: number
  /** Of the engine, if gateways share the limits. */
  readonly window: number
}

/** A limit of a tenant. */
export interface ShownBucket {
  readonly unit: 'requests' | 'tokens'
  readonly ruleId: string | null
  readonly perMinute: number
  /** On this gateway; negative after an overrun. */
  readonly left: number
  /** Null unless gateways share it. */
  readonly shared: BucketFacts | null
}

type TenantsConfig = LimitsConfig['tenants']

export class TenantLimiter {
  readonly #table: BucketTable
  readonly #known = new Map<string, readonly Scope[]>()
  #config: TenantsConfig
  #overrides: ReadonlyMap<string, TenantLimits> = new Map()
  /** Null while the limits are those of this gateway. */
  #allowance: Allowance | null = null

  constructor(table: BucketTable, config: TenantsConfig) {
    this.#table = table
    this.#config = config
    this.update(config)
  }

  update(config: TenantsConfig): void {
    this.#config = config
    this.#overrides = new Map(config.overrides.map((one) => [toTenant(one.tenant), one]))
    this.#known.clear()
  }

  /** Shares the limits with other gateways. */
  share(allowance: Allowance): void {
    this.#allowance = allowance
  }

  /** Whether the limits of the tenant depend on the model. */
  hasModelRules(tenant: string): boolean {
    return this.#limitsOf(tenant).modelRules.length > 0
  }

  /** Running requests that the tenant may have; null for any number. */
  maxRunning(tenant: string): number | null {
    return this.#limitsOf(tenant).maxConcurrentRequests
  }

  /**
   * Takes one request and its tokens from all buckets that apply, or nothing.
   *
   * @param models that may serve it, null for any; each matching rule counts once
   * @param tokens estimated prompt tokens
   * @param isCounted the request has been counted before: only its tokens are taken
   * @returns null if the tenant has no limits; tokens to ask for if a shared limit lacks them
   * @throws tenant_rate_limit_exceeded (429) with Retry-After
   */
  reserve(
    tenant: string,
    models: readonly string[] | null,
    tokens: number,
    nowNs: bigint,
    isCounted = false,
  ): Reservation | TokenShortage | null {
    const all = this.#scopesOf(tenant, models)
    const scopes = isCounted ? all.filter(({ unit }) => unit === 'tokens') : all
    if (scopes.length === 0) return null
    const window = this.#allowance?.window(sharedOf(scopes[0])) ?? 0
    if (this.#allowance !== null) refuseTooLarge(scopes, tokens)
    for (let taken = 0; taken < scopes.length; taken++) {
      const scope = scopes[taken]
      const wait = this.#take(scope, costOf(scope.unit, tokens), nowNs)
      if (wait === 0n) continue
      this.refund({ scopes: scopes.slice(0, taken), tokens, window }, nowNs)
      if (wait instanceof TokenShortage) return wait
      throw this.#allowance === null ? this.#refusal(scopes, tokens, nowNs) : refusalOf(scope, wait)
    }
    return { scopes, tokens, window }
  }

  /** Replaces the estimate by the tokens used; the bucket may become negative. */
  settle({ scopes, tokens, window }: Reservation, usedTokens: number, nowNs: bigint): void {
    if (usedTokens === tokens) return
    for (const scope of scopes)
      if (scope.unit === 'tokens') this.#charge(scope, usedTokens - tokens, window, nowNs)
  }

  /** Returns everything, for a request that did not run. */
  refund({ scopes, tokens, window }: Reservation, nowNs: bigint): void {
    for (const scope of scopes) this.#charge(scope, -costOf(scope.unit, tokens), window, nowNs)
  }

  /** Limits of a tenant and what remains of them on this gateway. */
  show(tenant: string, model: string | null, nowNs: bigint): ShownBucket[] {
    return this.#scopes(toTenant(tenant), model).map((scope) => {
      const { key, size, unit, ruleId } = scope
      const left = tokensLeft(this.#table.peek(key), size, nowNs)
      const shared = this.#allowance === null ? null : sharedOf(scope).facts
      return { unit, ruleId, perMinute: size.capacity, left, shared }
    })
  }

  #take(scope: Scope, cost: number, nowNs: bigint): bigint | TokenShortage {
    const allowance = this.#allowance
    if (allowance === null || allowance.shares > 0) {
      const index = this.#table.find(scope.key, nowNs)
      return takeTokens(this.#table.words, index, this.#sizeOf(scope), cost, nowNs)
    }
    return allowance.take(sharedOf(scope), cost, nowNs)
  }

  /** @param tokens negative ones are put back */
  #charge(scope: Scope, tokens: number, window: number, nowNs: bigint): void {
    const allowance = this.#allowance
    if (allowance === null || allowance.shares > 0) {
      const index = this.#table.find(scope.key, nowNs)
      chargeTokens(this.#table.words, index, this.#sizeOf(scope), tokens, nowNs)
    } else if (tokens > 0) {
      allowance.charge(sharedOf(scope), tokens)
    } else {
      allowance.putBack(sharedOf(scope), -tokens, window)
    }
  }

  /** Without the engine, a shared limit is divided. */
  #sizeOf({ size }: Scope): BucketSize {
    const shares = this.#allowance?.shares ?? 0
    return shares > 1 ? bucketPerMinute(Math.max(1, Math.floor(size.capacity / shares))) : size
  }

  #limitsOf(tenant: string): TenantLimits {
    return this.#overrides.get(tenant) ?? this.#config.default
  }

  #scopesOf(tenant: string, models: readonly string[] | null): readonly Scope[] {
    if (models !== null && models.length < 2) return this.#scopes(tenant, models[0] ?? null)
    const limits = this.#limitsOf(tenant)
    const found = models?.map((model) => findRule(limits.modelRules, model)) ?? limits.modelRules
    return scopesOf(tenant, limits, new Set(found.filter((rule) => rule !== undefined)))
  }

  #scopes(tenant: string, model: string | null): readonly Scope[] {
    const limits = this.#limitsOf(tenant)
    const rule = model === null ? undefined : findRule(limits.modelRules, model)
    const name = rule === undefined ? tenant : `${tenant}\n${rule.ruleId}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const scopes = scopesOf(tenant, limits, rule === undefined ? [] : [rule])
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(name, scopes)
    return scopes
  }

  /** Reports the bucket with the longest wait. */
  #refusal(scopes: readonly Scope[], tokens: number, nowNs: bigint): Error {
    refuseTooLarge(scopes, tokens)
    let longest = scopes[0]
    let wait = 0n
    for (const scope of scopes) {
      const moment = this.#table.peek(scope.key)
      const own = bucketWaitNs(moment, scope.size, costOf(scope.unit, tokens), nowNs)
      if (own < wait) continue
      longest = scope
      wait = own
    }
    return refusalOf(longest, wait)
  }
}

function refusalOf(scope: Scope, waitNs: bigint): Error {
  const seconds = toRetryAfterSec(waitNs)
  const text = `the limit of ${limitText(scope)} is exceeded; retry in ${seconds} s`
  return limitsErrors.tenant_rate_limit_exceeded.with(retryAfter(seconds), text)
}

/** @throws tenant_rate_limit_exceeded if a limit is smaller than the request */
function refuseTooLarge(scopes: readonly Scope[], tokens: number): void {
  const impossible = scopes.find(({ size, unit }) => costOf(unit, tokens) > size.capacity)
  if (impossible === undefined) return
  // Clients that know `x-should-retry` do not retry.
  const headers = ['retry-after', String(MINUTE_SEC), 'x-should-retry', 'false']
  throw limitsErrors.tenant_rate_limit_exceeded.with({ headers }, tooLargeText(impossible, tokens))
}

function sharedOf(scope: Scope): SharedBucket {
  scope.shared ??= new SharedBucket(scope.key, scope.size.capacity, MINUTE_MS)
  return scope.shared
}

/** Exact beats prefix, longer beats shorter. */
export function findRule(rules: readonly ModelRule[], model: string): ModelRule | undefined {
  let best: ModelRule | undefined
  for (const rule of rules) {
    if (rule.match === 'exact' && rule.model === model) return rule
    if (rule.match === 'exact' || !model.startsWith(rule.model)) continue
    if (best === undefined || rule.model.length > best.model.length) best = rule
  }
  return best
}

/** Of the tenant, and of the rules that apply. */
function scopesOf(tenant: string, limits: TenantLimits, rules: Iterable<ModelRule>): Scope[] {
  const scopes: Scope[] = []
  for (const limit of [{ ...limits, ruleId: null }, ...rules])
    for (const [unit, perMinute] of [
      ['requests', limit.requestsPerMinute],
      ['tokens', limit.tokensPerMinute],
    ] as const) {
      if (perMinute === null) continue
      const key = bucketKey(tenant, limit.ruleId ?? '', unit)
      scopes.push({ key, size: bucketPerMinute(perMinute), unit, ruleId: limit.ruleId, shared: null })
    }
  return scopes
}

function costOf(unit: Scope['unit'], tokens: number): number {
  return unit === 'requests' ? 1 : tokens
}

function limitText({ size, unit, ruleId }: Scope): string {
  const scope = ruleId === null ? 'this tenant' : `rule ${ruleId}`
  return `${size.capacity} ${unit} per minute of ${scope}`
}

function tooLargeText(scope: Scope, tokens: number): string {
  return `the request is estimated at ${tokens} tokens, above the limit of ${limitText(scope)}; send a smaller request`
}
