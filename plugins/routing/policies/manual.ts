/**
 * manual: keeps a session on its worker; it moves only while that worker is unavailable.
 * @hot
 */

import type { CandidateView, PickRequest, Policy, PolicyParts, RandomSource } from '#kernel'
import { BranchPolicy } from './branch-policy.ts'
import type { ManualConfig } from './config.ts'
import { hashHigh, hashLow, hashText, ModelSeed, mix } from './hash64.ts'
import type { PolicyState } from './policy-state.ts'
import type { SessionKeys } from './sessions/session-keys.ts'
import type { StickySessions } from './sessions/sticky-sessions.ts'
import type { WorkerCounters } from './worker-counters.ts'

const BRANCHES = ['occupied_hit', 'occupied_miss', 'vacant', 'no_routing_id'] as const
type Branch = (typeof BRANCHES)[number]

export class Manual extends BranchPolicy<Branch> implements Policy {
  readonly name = 'manual'
  readonly isSticky = true
  readonly needsBody: boolean
  private readonly keys: SessionKeys
  /** Read for each new session, because it can be reloaded. */
  private readonly settings: ManualConfig
  private readonly sessions: StickySessions
  private readonly counters: WorkerCounters
  private readonly random: RandomSource
  /** A session has separate workers for prefill and decode. */
  private readonly keyPrefix: string
  private readonly seed = new ModelSeed()

  constructor(
    { config, sessions, counters }: PolicyState,
    keys: SessionKeys,
    { random, metrics, leg }: PolicyParts,
  ) {
    super(metrics, 'weir_manual_policy_branch_total', BRANCHES)
    this.settings = config.manual
    this.keys = keys
    this.needsBody = keys.readsBody
    this.sessions = sessions
    this.counters = counters
    this.random = random
    this.keyPrefix = leg === 'whole' ? '' : `${leg}:`
    sessions.sweep.open()
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    return this.pickFor(this.keys.of(request), candidates, request)
  }

  /** @param key of the session; empty for none */
  pickFor(key: string, candidates: CandidateView, request: PickRequest): number {
    if (key === '') return this.chosen(candidates, this.assign(candidates, null), 'no_routing_id')
    this.seed.follow(request.model)
    hashText(this.keyPrefix === '' ? key : this.keyPrefix + key, this.seed.low, this.seed.high)
    const low = hashLow
    const high = hashHigh
    const entry = this.sessions.find(low, high)
    const index = entry < 0 ? -1 : this.available(candidates, entry)
    if (index < 0) return this.pickNew(candidates, low, high)
    this.sessions.touch(entry)
    return this.chosen(candidates, index, 'occupied_hit')
  }

  close(): void {
    this.sessions.sweep.close()
  }

  /** If another thread has assigned the session meanwhile, its choice is used. */
  private pickNew(candidates: CandidateView, low: number, high: number): number {
    const { sessions } = this
    sessions.lock(low)
    const entry = sessions.find(low, high)
    let index = entry < 0 ? -1 : this.available(candidates, entry)
    const branch = index >= 0 ? 'occupied_hit' : entry >= 0 ? 'occupied_miss' : 'vacant'
    if (index < 0) {
      index = this.assign(candidates, high)
      sessions.assign(low, high, this.counters.nameOf(candidates.worker(index)))
    }
    sessions.unlock(low)
    return this.chosen(candidates, index, branch)
  }

  /** The first available worker of the session; -1 if none is. */
  private available(candidates: CandidateView, entry: number): number {
    const first = this.indexOf(candidates, this.sessions.first(entry))
    return first >= 0 ? first : this.indexOf(candidates, this.sessions.second(entry))
  }

  private indexOf(candidates: CandidateView, name: number): number {
    if (name === 0) return -1
    const index = candidates.indexOfSlot(name >>> 16)
    return index >= 0 && this.counters.nameOf(candidates.worker(index)) === name ? index : -1
  }

  /**
   * Ties are resolved at random.
   * @param hash of the session; null without a key
   */
  private assign(candidates: CandidateView, hash: number | null): number {
    const { length } = candidates
    if (this.settings.assignmentMode === 'random')
      return hash === null ? Math.floor(this.random() * length) : this.rendezvous(candidates, hash)
    let best = 0
    let least = Number.POSITIVE_INFINITY
    let equals = 0
    for (let i = 0; i < length; i++) {
      const load =
        this.settings.assignmentMode === 'min_load' ? candidates.inFlight(i) : this.sessionsOf(candidates, i)
      if (load > least) continue
      equals = load === least ? equals + 1 : 1
      least = load
      if (this.random() * equals < 1) best = i
    }
    return best
  }

  /** Rendezvous hashing: gateways that see the same workers choose the same one, without a message. */
  private rendezvous(candidates: CandidateView, hash: number): number {
    let best = 0
    let most = -1
    for (let i = 0; i < candidates.length; i++) {
      const weight = mix(hash ^ this.counters.urlHash(candidates.worker(i))) >>> 0
      if (weight <= most) continue
      best = i
      most = weight
    }
    return best
  }

  /** `tagOf` resets the count if another worker had the slot before. */
  private sessionsOf(candidates: CandidateView, index: number): number {
    this.counters.tagOf(candidates.worker(index))
    return this.counters.sessions(candidates.slot(index))
  }
}
