/**
 * Picks the worker of one attempt: model, leg, tiers, policy, breaker.
 * @hot
 */
import type { CandidateReport, HookSignatures } from '../contracts/hook.ts'
import type { CandidateView, PickLeg, PickRequest, Policy, RandomSource } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import { NO_PENDING_WORKERS, type PendingWorkers, type WorkerEntry } from '../contracts/worker.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { retryAfter } from '../errors/gateway-error.ts'
import { balanceErrors } from './balance-errors.ts'
import { type Breakers, REFUSED } from './breakers.ts'
import { type CandidateParts, Candidates } from './candidates.ts'
import {
  type CompiledTable,
  isListed,
  type ModelRoute,
  UNKNOWN_MODEL,
  WORKER_TYPE_OF_LEG,
} from './compiled-table.ts'
import { type AttemptCounters, CountedAttempt } from './counted-attempt.ts'
import type { ModelPolicies } from './model-policies.ts'
import { isSuspect } from './outliers.ts'
import type { Attempt, Choice, PickOptions } from './worker-balance.ts'

export const CHOSEN_BY_HOOK = Object.freeze({ policy: 'hook', choice: null })
const LAST_WORKER = Object.freeze({ policy: 'last_worker', choice: null })
const NOT_TRIED: readonly number[] = Object.freeze([])
const NO_OPTIONS: PickOptions = Object.freeze({})
/** Limit of new attempts at a pick after other threads acquired the last probe permit first. */
const MAX_ROUNDS = 8
/** For requests that a worker may serve once it is registered. */
const PENDING_RETRY = retryAfter(5)

/** The request as a policy sees it; one object per thread, reused for every request. */
class CurrentRequest implements PickRequest {
  leg: PickLeg = 'whole'
  tokenIds: Uint32Array | null = null
  model = ''
  ctx: RelayContext | null = null
  showsBody = false
  /** Replaces the client's body. */
  promptBytes: Buffer | null = null

  get body(): Buffer | null {
    // Valid during the pick only: its memory may be reused afterwards.
    if (!this.showsBody || this.ctx === null) return null
    return this.promptBytes ?? this.ctx.rawBody
  }

  header(name: string): string | undefined {
    return this.ctx === null ? undefined : this.ctx.header(name)
  }
}

export interface PickerParts extends CandidateParts, AttemptCounters {
  readonly policies: ModelPolicies
  readonly pending?: { readonly current: PendingWorkers }
  readonly random: RandomSource
}

export class Picker {
  /** Receives every choice. */
  traffic: Pick<TrafficWatch, 'selected'> | null = null
  #table: CompiledTable
  readonly #parts: PickerParts
  readonly #candidates: Candidates
  readonly #request = new CurrentRequest()

  constructor(table: CompiledTable, parts: PickerParts) {
    this.#table = table
    this.#parts = parts
    this.#candidates = new Candidates(parts)
    this.#candidates.reserve(table.largestTier)
  }

  /** The next pick uses this table. */
  setTable(table: CompiledTable): void {
    this.#table = table
    this.#candidates.reserve(table.largestTier)
  }

  /**
   * @throws no_workers, workers_pending (503), model_not_found (404), no_available_workers, no_suitable_worker, server_selection_failed,
   * worker_overload_protection_shed (503)
   */
  pick(ctx: RelayContext, model: string, options: PickOptions = NO_OPTIONS): Attempt {
    const { onPick } = ctx.hooks
    const hooked = onPick === null ? null : this.#pickByHook(onPick, ctx, model, options.leg ?? 'whole')
    return hooked ?? this.#pickByPolicy(ctx, model, options)
  }

  /**
   * Whether a request goes to a prefill/decode pair: draws in proportion to the number of workers of each side. A side that
   * lists the model is preferred to one of wildcard workers, and a side without an available worker is not used if the other
   * has one.
   */
  usesPair(model: string): boolean {
    if (!this.#table.hasPairs) return false
    const { whole, prefill, decode } = this.#table.planOf(model)
    if (prefill === null || decode === null) return false
    if (whole === null) return true
    const { breakers, random } = this.#parts
    const takesPair = drawn(whole, prefill, decode, random)
    const isPairUp = hasAvailable(prefill, breakers) && hasAvailable(decode, breakers)
    if (takesPair) return isPairUp || !hasAvailable(whole, breakers)
    return isPairUp && !hasAvailable(whole, breakers)
  }

  /** Ignores onPick hooks, which may choose any worker. */
  hasUntried(model: string, { leg = 'whole', excluded = NOT_TRIED, accepts = null }: PickOptions): boolean {
    const route = this.#table.planOf(model)[leg]
    return route !== null && this.#candidates.hasUntried(route.tiers, excluded, accepts)
  }

  /** A hook may choose any available worker of the leg, whatever model it serves; other results are ignored. */
  #pickByHook(
    hook: HookSignatures['onPick'],
    ctx: RelayContext,
    model: string,
    leg: PickLeg,
  ): Attempt | null {
    const slot = hook(ctx, model)
    if (typeof slot !== 'number') return null
    const worker = this.#table.bySlot.get(slot)
    if (worker === undefined || worker.workerType !== WORKER_TYPE_OF_LEG[leg]) return null
    const { breakers, counters } = this.#parts
    const permit = counters.isReady(slot) ? breakers.acquire(worker) : REFUSED
    if (permit === REFUSED) return null
    this.#selected(worker, model, CHOSEN_BY_HOOK.policy)
    return new CountedAttempt(this.#parts, worker, CHOSEN_BY_HOOK, permit)
  }

  #pickByPolicy(ctx: RelayContext, model: string, options: PickOptions): Attempt {
    const { leg = 'whole' } = options
    const route = this.#table.planOf(model)[leg]
    if (route === null) throw this.#noRoute(model, leg)
    const candidates = this.#candidates
    const parts = this.#parts
    const policy = parts.policies.of(route)
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (!candidates.fill(route.tiers, options.excluded ?? NOT_TRIED, options.accepts ?? null)) break
      const index = this.#indexByPolicy(policy, ctx, model, options)
      // The policy rejects every candidate; an index outside the view means the same.
      if (!(index >= 0 && index < candidates.length))
        throw balanceErrors.no_suitable_worker(policy.name, model)
      const worker = candidates.worker(index)
      const choice = options.report === true ? reportChoice(policy, candidates, parts) : null
      const permit = parts.breakers.acquire(worker)
      if (permit === REFUSED) {
        candidates.invalidate()
        continue
      }
      this.#selected(worker, model, policy.name)
      return new CountedAttempt(parts, worker, { policy: policy.name, choice }, permit)
    }
    return this.#pickThrottled(route, model, options) ?? this.#throwUnavailable(route, model, options)
  }

  /** No worker is available: tries the least busy one whose breaker counted only failed responses. */
  #pickThrottled(route: ModelRoute, model: string, options: PickOptions): Attempt | null {
    const { breakers, counters } = this.#parts
    let last: WorkerEntry | null = null
    for (const { workers } of route.tiers) {
      for (const worker of workers) {
        const { slot } = worker
        if (!counters.isReady(slot) || !breakers.isThrottledOnly(slot)) continue
        if (options.accepts != null && !options.accepts(worker)) continue
        if (this.#candidates.shedMs(slot) !== null) continue
        if (last === null || counters.load(slot) < counters.load(last.slot)) last = worker
      }
    }
    if (last === null) return null
    const permit = breakers.acquireThrottled(last)
    if (permit === REFUSED) return null
    this.#selected(last, model, LAST_WORKER.policy)
    return new CountedAttempt(this.#parts, last, LAST_WORKER, permit)
  }

  #indexByPolicy(policy: Policy, ctx: RelayContext, model: string, options: PickOptions): number {
    const candidates = this.#candidates
    const request = this.#request
    request.ctx = ctx
    request.model = model === '' ? UNKNOWN_MODEL : model
    request.leg = options.leg ?? 'whole'
    request.tokenIds = options.tokenIds ?? null
    request.showsBody = policy.needsBody
    request.promptBytes = options.promptBytes ?? null
    const index = policy.pick(candidates, request)
    request.ctx = null // does not keep the body after the request
    request.tokenIds = null
    request.promptBytes = null
    return index
  }

  #selected(worker: WorkerEntry, model: string, policy: string): void {
    this.traffic?.selected(worker, model === '' ? UNKNOWN_MODEL : model, policy)
  }

  #noRoute(model: string, leg: PickLeg): GatewayError {
    const pending = this.#parts.pending?.current ?? NO_PENDING_WORKERS
    const options = pending.count > 0 ? PENDING_RETRY : {}
    const plan = this.#table.planOf(model)
    const hasPrefill = plan.prefill !== null
    const hasDecode = plan.decode !== null
    if (leg !== 'whole' || hasPrefill || hasDecode) {
      const missing = leg !== 'whole' || hasPrefill === hasDecode ? leg : hasPrefill ? 'decode' : 'prefill'
      return balanceErrors.server_selection_failed.with(options, missing, model)
    }
    if (pending.isDiscovering || pending.models.includes(model))
      return balanceErrors.workers_pending.with(options, model, pending)
    return this.#table.workers.length === 0
      ? balanceErrors.no_workers.with(options, pending)
      : balanceErrors.model_not_found.with({ param: 'model' }, model)
  }

  #throwUnavailable({ tiers, leg }: ModelRoute, model: string, { accepts }: PickOptions): never {
    let waitMs = Number.POSITIVE_INFINITY
    let shedMs = Number.POSITIVE_INFINITY
    for (const { workers } of tiers) {
      for (const worker of workers) {
        const { counters, breakers } = this.#parts
        if (!counters.isReady(worker.slot)) continue
        waitMs = Math.min(waitMs, breakers.isThrottledOnly(worker.slot) ? 0 : breakers.waitMs(worker))
        const couldTakeIt = breakers.isAvailable(worker) && (accepts?.(worker) ?? true)
        if (couldTakeIt) shedMs = Math.min(shedMs, this.#candidates.shedMs(worker.slot) ?? shedMs)
      }
    }
    if (Number.isFinite(shedMs))
      throw balanceErrors.worker_overload_protection_shed.with(retryAfter(shedMs / 1_000), model)
    const retry = retryAfter(Number.isFinite(waitMs) ? waitMs / 1_000 : 0)
    throw leg === 'whole'
      ? balanceErrors.no_available_workers.with(retry, model)
      : balanceErrors.server_selection_failed.with(retry, leg, model)
  }
}

/** Slowness of a worker that takes twice as long as others, see `CandidateView.slownessBySlot`. */
const LIKE_OTHERS = 256
/** Limit of the candidates in a report. */
const MAX_CANDIDATES = 64

/** Describes a choice; call it after the policy chose and before the attempt is counted. */
function reportChoice(
  policy: Policy,
  { members, slownessBySlot }: Pick<CandidateView, 'members' | 'slownessBySlot'>,
  counts: Pick<AttemptCounters, 'counters' | 'breakers'>,
): Choice {
  const { counters, breakers } = counts
  const candidates = members.slice(0, MAX_CANDIDATES).map(
    (worker): CandidateReport => ({
      workerId: worker.id,
      url: worker.url,
      inFlight: counters.load(worker.slot),
      loadScore: (counters.load(worker.slot) + 1) * (1 + slownessBySlot[worker.slot] / LIKE_OTHERS),
      breaker: breakers.state(worker),
      isAvailable: breakers.isAvailable(worker),
      isSuspect: isSuspect(counters.layout, worker.slot),
    }),
  )
  return { explanation: policy.explain?.() ?? null, candidates }
}

function drawn(whole: ModelRoute, prefill: ModelRoute, decode: ModelRoute, random: RandomSource): boolean {
  const isPairListed = isListed(prefill) && isListed(decode)
  if (isListed(whole) !== isPairListed) return isPairListed
  const pairWorkers = prefill.holderCount + decode.holderCount
  return random() * (whole.holderCount + pairWorkers) < pairWorkers
}

function hasAvailable({ tiers }: ModelRoute, breakers: Breakers): boolean {
  for (let i = 0; i < tiers.length; i++) {
    const { workers } = tiers[i]
    for (let at = 0; at < workers.length; at++) if (breakers.isAvailable(workers[at])) return true
  }
  return false
}
