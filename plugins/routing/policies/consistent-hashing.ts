/**
 * consistent_hashing: a session key decides, by a hash ring; few keys move when workers come and go.
 * @hot
 */
import type { CandidateView, CounterHandle, PickRequest, Policy, PolicyParts, RandomSource } from '#kernel'
import { branchCounters } from './branch-counters.ts'
import { HashRings } from './hash-ring.ts'
import { hashHigh, hashText } from './hash64.ts'
import { implicitKey, routingKey, targetWorker } from './routing-key.ts'

const BRANCHES = [
  'target_worker_hit',
  'target_worker_miss',
  'routing_key_hit',
  'implicit_key_hit',
  'random_fallback',
] as const
type Branch = (typeof BRANCHES)[number]

export class ConsistentHashing implements Policy {
  readonly name = 'consistent_hashing'
  readonly isSticky = true
  readonly needsBody = false
  private readonly random: RandomSource
  private readonly rings: HashRings
  private readonly branches: Readonly<Record<Branch, CounterHandle>>
  private branch: Branch = 'random_fallback'
  private slot = -1

  constructor(virtualNodes: number, { random, metrics }: Pick<PolicyParts, 'random' | 'metrics'>) {
    this.random = random
    this.rings = new HashRings(virtualNodes)
    this.branches = branchCounters(metrics, 'weir_consistent_hashing_policy_branch_total', BRANCHES)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const target = targetWorker(request)
    if (target !== undefined) return this.pickTarget(candidates, target)
    const routing = routingKey(request)
    if (routing !== '') return this.pickByKey(candidates, routing, 'routing_key_hit')
    const implicit = implicitKey(request)
    if (implicit !== '') return this.pickByKey(candidates, implicit, 'implicit_key_hit')
    return this.chosen(candidates, Math.floor(this.random() * candidates.length), 'random_fallback')
  }

  explain(): string {
    return this.slot < 0 ? this.branch : `${this.branch}: slot ${this.slot}`
  }

  /** The worker's number in order of registration, from 0; nobody stands in for one that is away or does not exist. */
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

  private chosen(candidates: CandidateView, index: number, branch: Branch): number {
    this.branch = branch
    this.slot = index < 0 ? -1 : candidates.slot(index)
    this.branches[branch].inc()
    return index
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
