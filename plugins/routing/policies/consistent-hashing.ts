/**
 * consistent_hashing: picks by a session key on a hash ring; few keys move when workers are added or removed.
 * @hot
 */
import type { CandidateView, PickRequest, Policy, PolicyParts, RandomSource } from '#kernel'
import { BranchPolicy } from './branch-policy.ts'
import { hashHigh, hashText } from './hash64.ts'
import { HashRings } from './sessions/hash-ring.ts'
import { implicitKey, targetWorker } from './sessions/routing-headers.ts'
import type { SessionKeys } from './sessions/session-keys.ts'

const BRANCHES = [
  'target_worker_hit',
  'target_worker_miss',
  'routing_key_hit',
  'implicit_key_hit',
  'random_fallback',
] as const
type Branch = (typeof BRANCHES)[number]

export class ConsistentHashing extends BranchPolicy<Branch> implements Policy {
  readonly name = 'consistent_hashing'
  readonly isSticky = true
  readonly needsBody: boolean
  private readonly keys: SessionKeys
  private readonly random: RandomSource
  private readonly rings: HashRings

  constructor(
    virtualNodes: number,
    keys: SessionKeys,
    { random, metrics }: Pick<PolicyParts, 'random' | 'metrics'>,
  ) {
    super(metrics, 'weir_consistent_hashing_policy_branch_total', BRANCHES)
    this.keys = keys
    this.needsBody = keys.readsBody
    this.random = random
    this.rings = new HashRings(virtualNodes)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const target = targetWorker(request)
    if (target !== undefined) return this.pickTarget(candidates, target)
    const routing = this.keys.of(request)
    if (routing !== '') return this.pickByKey(candidates, routing, 'routing_key_hit')
    const implicit = implicitKey(request)
    if (implicit !== '') return this.pickByKey(candidates, implicit, 'implicit_key_hit')
    return this.chosen(candidates, Math.floor(this.random() * candidates.length), 'random_fallback')
  }

  /** `target` is the 0-based number in order of registration; there is no fallback if that worker is unavailable. */
  private pickTarget(candidates: CandidateView, target: string): number {
    const { members } = candidates
    const number = toNumber(target)
    const index = number < members.length ? candidates.indexOfSlot(members[number].slot) : -1
    return this.chosen(candidates, index, index < 0 ? 'target_worker_miss' : 'target_worker_hit')
  }

  private pickByKey(candidates: CandidateView, key: string, branch: Branch): number {
    const ring = this.rings.of(candidates.members) // before the key: a ring that is built hashes too
    hashText(key)
    const index = ring.find(hashHigh, candidates)
    return this.chosen(candidates, index, branch)
  }
}

/** @returns Infinity for anything but one to six digits */
function toNumber(text: string): number {
  if (text.length === 0 || text.length > 6) return Number.POSITIVE_INFINITY
  let number = 0
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48
    if (digit < 0 || digit > 9) return Number.POSITIVE_INFINITY
    number = number * 10 + digit
  }
  return number
}
