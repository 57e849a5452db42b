/** A fleet as passed to policies, for tests of policies alone: workers, their load and engine reports. */
import { PolicyRegistry } from '../../kernel/balance/policy-registry.ts'
import type { CandidateView, PickRequest, Policy, PolicyParts } from '../../kernel/contracts/policy.ts'
import type { EngineLoad, WorkerEntry } from '../../kernel/contracts/worker.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import type { PolicyState, PolicyStateOptions } from '../../plugins/routing/policies/policy-state.ts'
import { addPolicies, type PolicySettings } from './policies.ts'
import { workerEntry } from './worker-entry.ts'

export const MAX_WORKERS = 4_096

export interface FleetWorker {
  readonly entry: WorkerEntry
  inFlight: number
  isAvailable: boolean
  load: EngineLoad | null
}

/** A worker of the fleet; available and idle by default. */
export function fleetWorker(
  slot: number,
  given: Partial<Omit<FleetWorker, 'entry'>> & { cost?: number; id?: string } = {},
): FleetWorker {
  const { inFlight = 0, isAvailable = true, load = null, cost = 1, id = `worker-${slot}` } = given
  return { entry: workerEntry({ slot, id, cost, models: ['m'] }), inFlight, isAvailable, load }
}

export function fleetOf(count: number): FleetWorker[] {
  return Array.from({ length: count }, (_, slot) => fleetWorker(slot))
}

/** Defaults of a current engine report. */
export function engineLoad(given: Partial<EngineLoad>): EngineLoad {
  return {
    queuedTokens: 0,
    usedTokens: -1,
    kvUsage: -1,
    tokensPerSecond: 0,
    atMs: 1_000,
    ...given,
  }
}

const memberLists = new WeakMap<readonly FleetWorker[], readonly WorkerEntry[]>()

/** The view of one array of workers as balancing makes it; reading outside it fails the test. */
export function viewOf(fleet: readonly FleetWorker[]): CandidateView {
  const candidates = fleet.filter(({ isAvailable }) => isAvailable)
  const members = memberLists.get(fleet) ?? fleet.map(({ entry }) => entry)
  memberLists.set(fleet, members)
  const at = (index: number): FleetWorker => {
    if (!(Number.isInteger(index) && index >= 0 && index < candidates.length)) {
      throw new RangeError(`the policy read position ${index} of ${candidates.length}`)
    }
    return candidates[index]
  }
  return {
    length: candidates.length,
    members,
    worker: (index) => at(index).entry,
    slot: (index) => at(index).entry.slot,
    inFlight: (index) => at(index).inFlight,
    slots: Int32Array.from(candidates, ({ entry }) => entry.slot),
    get inFlightBySlot() {
      const counts = new Int32Array(Math.max(0, ...candidates.map(({ entry }) => entry.slot)) + 1)
      for (const { entry, inFlight } of candidates) counts[entry.slot] = inFlight
      return counts
    },
    slownessBySlot: new Int32Array(MAX_WORKERS),
    hasEqualCosts: fleet.every(({ entry }) => entry.cost === fleet[0].entry.cost),
    hasLoads: fleet.some(({ load }) => load !== null),
    load: (index) => at(index).load,
    indexOfSlot: (slot) => candidates.findIndex(({ entry }) => entry.slot === slot),
  }
}

export interface RequestParts {
  readonly model?: string
  readonly leg?: PickRequest['leg']
  readonly body?: string | null
  readonly tokenIds?: Uint32Array | null
  readonly headers?: Readonly<Record<string, string>>
}

export function pickRequest(given: RequestParts = {}): PickRequest {
  const { model = 'm', leg = 'whole', body = null, tokenIds = null, headers = {} } = given
  return {
    model,
    leg,
    body: body === null ? null : Buffer.from(body),
    tokenIds,
    header: (name) => headers[name],
  }
}

/** A chat request with one message. */
export function chatRequest(content: string, given: RequestParts = {}): PickRequest {
  const messages = [{ role: 'user', content }]
  return pickRequest({ body: JSON.stringify({ model: given.model ?? 'm', messages }), ...given })
}

/** The policies of one thread; threads of one gateway share memory. */
export class PolicyThread {
  readonly metrics = new ThreadMetrics()
  readonly state: PolicyState
  readonly registry = new PolicyRegistry()
  private readonly shared: PolicyParts['shared']

  constructor(
    settings: PolicySettings = {},
    memory = new SharedMemory(),
    rings?: PolicyStateOptions['rings'],
  ) {
    this.shared = (name, bytes) => memory.block(name, bytes)
    const { shared, metrics } = this
    this.state = addPolicies(this.registry, { shared, metrics, maxWorkers: MAX_WORKERS, rings }, settings)
  }

  policy(name: string, given: Partial<PolicyParts> = {}): Policy {
    const { metrics, shared } = this
    return this.registry.make(name, {
      model: 'm',
      leg: 'whole',
      random: Math.random,
      metrics,
      shared,
      ...given,
    })
  }

  /** Value of one series; 0 if absent. */
  metric(name: string, ...labels: string[]): number {
    const family = this.metrics.snapshot().find((candidate) => candidate.name === name)
    if (family === undefined || family.type === 'histogram') return 0
    return family.series.find((series) => series.labels.join() === labels.join())?.value ?? 0
  }
}

/** Picks once. @returns the slot, or -1 for none */
export function pickSlot(policy: Policy, fleet: readonly FleetWorker[], request = pickRequest()): number {
  const view = viewOf(fleet)
  const index = policy.pick(view, request)
  return index < 0 ? -1 : view.slot(index)
}

/** Picks many times. @returns requests by slot */
export function countSlots(
  policy: Policy,
  fleet: readonly FleetWorker[],
  requests: Iterable<PickRequest>,
): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const request of requests) {
    const slot = pickSlot(policy, fleet, request)
    counts[slot] = (counts[slot] ?? 0) + 1
  }
  return counts
}

/** Pseudo-random numbers, the same in every run. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
