/**
 * Choosing one worker for one attempt: model, leg, tiers, policy, breaker.
 * @hot
 */
import type { HookSignatures } from '../contracts/hook.ts'
import type { PickLeg, PickRequest, Policy } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { RequestContext } from '../contracts/request.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { balanceErrors, retryAfter } from './balance-errors.ts'
import { REFUSED } from './breakers.ts'
import { type CandidateParts, Candidates } from './candidates.ts'
import { reportChoice } from './choice.ts'
import { type CompiledTable, type ModelRoute, UNKNOWN_MODEL, WORKER_TYPE_OF_LEG } from './compiled-table.ts'
import { CountedAttempt } from './counted-attempt.ts'
import type { ModelPolicies } from './model-policies.ts'
import type { Attempt, PickOptions } from './worker-balance.ts'

/** The `onPick` chain of the request's route, compiled at ready; null when nobody hooked. */
export type OnPickResolver = (ctx: RequestContext) => HookSignatures['onPick'] | null

const CHOSEN_BY_HOOK = Object.freeze({ policy: 'hook', choice: null })
const NOT_TRIED: readonly number[] = Object.freeze([])
const NO_OPTIONS: PickOptions = Object.freeze({})
/** How often a pick begins again because other threads took the last place for a probe first. */
const MAX_ROUNDS = 8

/** What a policy sees of the request; one per thread, pointed at each request in turn. */
class CurrentRequest implements PickRequest {
  leg: PickLeg = 'whole'
  tokenIds: Uint32Array | null = null
  model = ''
  ctx: RequestContext | null = null
  showsBody = false
  /** In place of the client's body. */
  promptBytes: Buffer | null = null

  get body(): Buffer | null {
    // Policies look at it during the pick only, so its memory may be used again afterwards.
    if (!this.showsBody || this.ctx === null) return null
    return this.promptBytes ?? (this.ctx as RelayContext).rawBody
  }

  header(name: string): string | undefined {
    return this.ctx === null ? undefined : this.ctx.header(name)
  }
}

export interface PickerParts extends CandidateParts {
  readonly policies: ModelPolicies
  readonly onPick: OnPickResolver | null
}

export class Picker {
  /** Told of each choice. */
  traffic: Pick<TrafficWatch, 'selected'> | null = null
  private table: CompiledTable
  private readonly parts: PickerParts
  private readonly candidates: Candidates
  private readonly request = new CurrentRequest()

  constructor(table: CompiledTable, parts: PickerParts) {
    this.table = table
    this.parts = parts
    this.candidates = new Candidates(parts)
    this.candidates.reserve(table.largestTier)
  }

  /** The next pick uses this table. */
  setTable(table: CompiledTable): void {
    this.table = table
    this.candidates.reserve(table.largestTier)
  }

  /** @throws no_workers (503), model_not_found (404), no_available_workers, no_suitable_worker, server_selection_failed (503) */
  pick(ctx: RequestContext, model: string, options: PickOptions = NO_OPTIONS): Attempt {
    const canonical = this.table.canonicalModel(model)
    const { onPick } = this.parts
    const hooked = onPick === null ? null : this.pickByHook(onPick, ctx, canonical, options.leg ?? 'whole')
    return hooked ?? this.pickByPolicy(ctx, canonical, options)
  }

  /** Hooks may send a request to any available worker of the leg, whatever it serves; other answers count as none. */
  private pickByHook(
    resolve: OnPickResolver,
    ctx: RequestContext,
    model: string,
    leg: PickLeg,
  ): Attempt | null {
    const hook = resolve(ctx)
    if (hook === null) return null
    const slot = hook(ctx, model)
    if (typeof slot !== 'number') return null
    const worker = this.table.bySlot.get(slot)
    if (worker === undefined || worker.workerType !== WORKER_TYPE_OF_LEG[leg]) return null
    const { breakers, counters } = this.parts
    const passage = counters.isReady(slot) ? breakers.enter(worker) : REFUSED
    if (passage === REFUSED) return null
    this.selected(worker, model, CHOSEN_BY_HOOK.policy)
    return new CountedAttempt(this.parts, worker, CHOSEN_BY_HOOK, passage)
  }

  private pickByPolicy(ctx: RequestContext, model: string, options: PickOptions): Attempt {
    const route = this.table.routeOf(model, options.leg)
    if (route === null) throw this.noRoute(model, options.leg ?? 'whole')
    const { candidates, parts } = this
    const policy = parts.policies.of(route)
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (!candidates.fill(route.tiers, options.excluded ?? NOT_TRIED, options.accepts ?? null)) break
      const index = this.ask(policy, ctx, model, options)
      // A policy may find nobody good enough, and would again; an index outside the view is held to mean the same.
      if (!(index >= 0 && index < candidates.length))
        throw balanceErrors.no_suitable_worker(policy.name, model)
      const worker = candidates.worker(index)
      const choice = options.report === true ? reportChoice(policy, candidates.members, parts) : null
      const passage = parts.breakers.enter(worker)
      if (passage === REFUSED) {
        candidates.forget()
        continue
      }
      this.selected(worker, model, policy.name)
      return new CountedAttempt(parts, worker, { policy: policy.name, choice }, passage)
    }
    throw this.nobody(route, model)
  }

  private ask(policy: Policy, ctx: RequestContext, model: string, options: PickOptions): number {
    const { candidates, request } = this
    request.ctx = ctx
    request.model = model === '' ? UNKNOWN_MODEL : model
    request.leg = options.leg ?? 'whole'
    request.tokenIds = options.tokenIds ?? null
    request.showsBody = policy.needsBody
    request.promptBytes = options.promptBytes ?? null
    const index = policy.pick(candidates, request)
    request.ctx = null // the body must not outlive its request
    request.tokenIds = null
    request.promptBytes = null
    return index
  }

  private selected(worker: WorkerEntry, model: string, policy: string): void {
    this.traffic?.selected(worker, model === '' ? UNKNOWN_MODEL : model, policy)
  }

  private noRoute(model: string, leg: PickLeg): GatewayError {
    if (leg !== 'whole') return balanceErrors.server_selection_failed(leg, model)
    const hasPrefill = this.table.routeOf(model, 'prefill') !== null
    const hasDecode = this.table.routeOf(model, 'decode') !== null
    if (hasPrefill && hasDecode) return balanceErrors.server_selection_failed('whole', model)
    if (hasPrefill) return balanceErrors.server_selection_failed('decode', model)
    if (hasDecode) return balanceErrors.server_selection_failed('prefill', model)
    return this.table.workers.length === 0 ? balanceErrors.no_workers() : balanceErrors.model_not_found(model)
  }

  private nobody({ tiers, leg }: ModelRoute, model: string): GatewayError {
    let waitMs = Number.POSITIVE_INFINITY
    for (const { workers } of tiers) {
      for (const worker of workers) {
        if (!this.parts.counters.isReady(worker.slot)) continue
        waitMs = Math.min(waitMs, this.parts.breakers.waitMs(worker))
      }
    }
    const retry = retryAfter(Number.isFinite(waitMs) ? waitMs : 0)
    return leg === 'whole'
      ? balanceErrors.no_available_workers.with(retry, model)
      : balanceErrors.server_selection_failed.with(retry, leg, model)
  }
}
