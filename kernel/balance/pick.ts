/**
 * Choosing one worker for one attempt: model, tiers, policy. Counting it as in flight is left to `thread-balance.ts`.
 * @hot
 */
import type { HookSignatures } from '../contracts/hook.ts'
import type { PickRequest } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { RequestContext } from '../contracts/request.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { balanceErrors, RETRY_SOON } from './balance-errors.ts'
import { Candidates } from './candidates.ts'
import { type CompiledTable, UNKNOWN_MODEL } from './compiled-table.ts'
import type { Counters } from './counters.ts'
import type { ModelPolicies } from './model-policies.ts'

/** The `onPick` chain of the request's route, compiled at ready; null when nobody hooked. */
export type OnPickResolver = (ctx: RequestContext) => HookSignatures['onPick'] | null

/** Told of each choice: the model as it is counted, and the policy's wire name or `hook`. */
export type SelectionListener = (worker: WorkerEntry, model: string, policy: string) => void

const CHOSEN_BY_HOOK = 'hook'
const NOT_TRIED: readonly number[] = Object.freeze([])

/** What a policy sees of the request; one per thread, pointed at each request in turn. */
class CurrentRequest implements PickRequest {
  readonly leg = 'whole'
  readonly tokenIds = null
  model = ''
  ctx: RequestContext | null = null
  showsBody = false

  get body(): Buffer | null {
    // Policies look at it during the pick only, so its memory may be used again afterwards.
    return this.showsBody && this.ctx !== null ? (this.ctx as RelayContext).rawBody : null
  }

  header(name: string): string | undefined {
    return this.ctx === null ? undefined : this.ctx.header(name)
  }
}

export class Picker {
  private table: CompiledTable
  private readonly counters: Counters
  private readonly policies: ModelPolicies
  private readonly onPick: OnPickResolver | null
  private readonly onSelected: SelectionListener | null
  private readonly candidates: Candidates
  private readonly request = new CurrentRequest()

  constructor(
    table: CompiledTable,
    parts: {
      counters: Counters
      policies: ModelPolicies
      onPick: OnPickResolver | null
      onSelected: SelectionListener | null
    },
  ) {
    this.table = table
    this.counters = parts.counters
    this.policies = parts.policies
    this.onPick = parts.onPick
    this.onSelected = parts.onSelected
    this.candidates = new Candidates(parts.counters)
    this.candidates.reserve(table.largestTier)
  }

  /** The next pick uses this table. */
  setTable(table: CompiledTable): void {
    this.table = table
    this.candidates.reserve(table.largestTier)
  }

  /** @throws no_workers (503), model_not_found (404), no_available_workers (503) */
  pick(ctx: RequestContext, model: string, tried: readonly number[] = NOT_TRIED): WorkerEntry {
    const canonical = this.table.canonicalModel(model)
    const hooked = this.onPick === null ? null : this.pickByHook(this.onPick, ctx, canonical)
    if (hooked === null) return this.pickByPolicy(ctx, canonical, tried)
    this.selected(hooked, canonical, CHOSEN_BY_HOOK)
    return hooked
  }

  /** Hooks may send a request to any registered worker that is ready; any other answer counts as none. */
  private pickByHook(resolve: OnPickResolver, ctx: RequestContext, model: string): WorkerEntry | null {
    const hook = resolve(ctx)
    if (hook === null) return null
    const slot = hook(ctx, model)
    if (typeof slot !== 'number') return null
    const worker = this.table.bySlot.get(slot)
    return worker !== undefined && this.counters.isReady(slot) ? worker : null
  }

  private selected(worker: WorkerEntry, model: string, policy: string): void {
    if (this.onSelected !== null) this.onSelected(worker, model === '' ? UNKNOWN_MODEL : model, policy)
  }

  private pickByPolicy(ctx: RequestContext, model: string, tried: readonly number[]): WorkerEntry {
    const route = this.table.routeOf(model)
    if (route === null) {
      throw this.table.hasRoutes ? balanceErrors.model_not_found(model) : balanceErrors.no_workers()
    }
    const { candidates, request } = this
    if (!candidates.fill(route.tiers, tried)) throw balanceErrors.no_available_workers.with(RETRY_SOON, model)
    const policy = this.policies.of(route)
    request.ctx = ctx
    request.model = model === '' ? UNKNOWN_MODEL : model
    request.showsBody = policy.needsBody
    const index = policy.pick(candidates, request)
    request.ctx = null // the body must not outlive its request
    // A policy may find nobody good enough; an index outside the view is held to mean the same.
    if (!(index >= 0 && index < candidates.length)) {
      throw balanceErrors.no_available_workers.with(RETRY_SOON, model)
    }
    const worker = candidates.worker(index)
    this.selected(worker, model, policy.name)
    return worker
  }
}
