/** Random histories of a fleet on three threads, with invariants checked after every step. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { balanceParts, defaultBreaker, openBalance, pickContext } from '../../test/support/balance-parts.ts'
import { runs } from '../../test/support/thorough.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { PickLeg } from '../contracts/policy.ts'
import type { WorkerEntry, WorkerStatus, WorkerTable } from '../contracts/worker.ts'
import { SharedMemory } from '../threads/shared-memory.ts'
import { WORKER_TYPE_OF_LEG } from './compiled-table.ts'
import { Counters, createCounters } from './counters.ts'
import type { ThreadBalance } from './thread-balance.ts'
import type { Attempt } from './worker-balance.ts'

const MAX_WORKERS = 6
const MODELS = ['m', 'n', 'alias-of-m', 'unlisted', 'unknown', '']
const LEGS: readonly PickLeg[] = ['whole', 'whole', 'prefill', 'decode']
const REFUSALS = ['no_workers', 'model_not_found', 'no_available_workers', 'server_selection_failed']
const contexts = ['', 'a', 'b'].map((key) => pickContext({ 'x-weir-routing-key': key }))

/** Control and two data threads over one buffer, with the state that a test must track. */
class Fleet {
  readonly threads: ThreadBalance[]
  readonly held: Attempt[] = []
  nowMs = 1_000_000
  private table: WorkerTable = { workers: [] }
  private readonly listeners: ((next: WorkerTable) => void)[] = []
  private registered = 0

  constructor(policy: string) {
    const buffer = createCounters(MAX_WORKERS, 2)
    const parts = balanceParts(new SharedMemory())
    const breaker = { ...defaultBreaker, failureThreshold: 2, successThreshold: 1, openMs: 1_000 }
    const table = {
      current: this.table,
      onChange: (listener: (next: WorkerTable) => void) => void this.listeners.push(listener),
    }
    this.threads = [0, 1, 2].map((thread) =>
      openBalance({
        ...parts,
        counters: new Counters(buffer, thread),
        table,
        defaultPolicy: policy,
        breaker,
        now: () => this.nowMs,
      }),
    )
  }

  get control(): ThreadBalance {
    return this.threads[0]
  }

  get workers(): readonly WorkerEntry[] {
    return this.table.workers
  }

  heldOf(slot: number): number {
    return this.held.filter((attempt) => attempt.worker.slot === slot).length
  }

  add(shape: number): void {
    let slot: number
    try {
      slot = this.control.allocateSlot()
    } catch {
      const blocked = new Set(
        [...this.workers, ...this.held.map((attempt) => attempt.worker)].map((w) => w.slot),
      )
      expect(blocked.size).toBe(MAX_WORKERS) // rejected only if every row is used or still has requests in flight
      return
    }
    expect(this.heldOf(slot)).toBe(0)
    expect(this.workers.some((worker) => worker.slot === slot)).toBe(false)
    const models = [[], ['n'], [{ id: 'm', aliases: ['alias-of-m'] }], ['m', 'n']][(shape >> 2) % 4]
    const id = `id-${this.registered++}`
    expect(this.control.breakerState(slot)).toBe('closed')
    const workerType = WORKER_TYPE_OF_LEG[LEGS[shape % 4]]
    const url = `http://${id}`
    const added = workerEntry({ slot, id, url, workerType, models, priority: 50 + (shape % 2), cost: shape })
    this.publish([...this.workers, added])
    if (shape % 5 !== 0) this.control.setStatus(slot, 'ready')
  }

  remove(index: number): void {
    const worker = this.workers[index % Math.max(this.workers.length, 1)]
    if (worker === undefined) return
    this.publish(this.workers.filter((other) => other !== worker))
    this.control.freeSlot(worker.slot)
  }

  setStatus(index: number, status: WorkerStatus): void {
    const worker = this.workers[index % Math.max(this.workers.length, 1)]
    if (worker !== undefined) this.control.setStatus(worker.slot, status)
  }

  pick(thread: number, model: string, leg: PickLeg, tried: readonly number[]): void {
    // Only a closed breaker is certain to admit, because probe permits may be in use.
    const states = this.workers.filter((worker) => this.serves(worker, model, leg)).map(this.stateOf)
    const available = this.workers.filter((worker) => this.stateOf(worker) !== null)
    let attempt: Attempt
    try {
      const ctx = contexts[tried.length % contexts.length]
      attempt = this.threads[thread].pick(ctx, model, { excluded: tried, leg })
    } catch (error) {
      expect(REFUSALS).toContain((error as { code: string }).code)
      expect(states).not.toContain('closed')
      return
    }
    const { worker } = attempt
    this.held.push(attempt)
    expect(available).toContain(worker)
    expect(this.serves(worker, model, leg)).toBe(true)
    if (!tried.includes(worker.slot)) return
    const others = this.workers.filter(
      (other) => this.serves(other, model, leg) && this.stateOf(other) === 'closed',
    )
    expect(others.every((other) => tried.includes(other.slot))).toBe(true)
  }

  end(index: number, outcome: Outcome): void {
    const [attempt] = this.held.splice(index % Math.max(this.held.length, 1), 1)
    if (outcome !== 'none') attempt?.[outcome]()
    attempt?.release()
    attempt?.release()
  }

  /** State of the worker's breaker; null if the worker cannot be picked. */
  private readonly stateOf = ({ slot }: WorkerEntry): 'closed' | 'half_open' | null => {
    if (this.control.status(slot) !== 'ready') return null
    const state = this.control.breakerState(slot)
    return state === 'open' ? null : state
  }

  private serves(worker: WorkerEntry, model: string, leg: PickLeg): boolean {
    if (worker.workerType !== WORKER_TYPE_OF_LEG[leg]) return false
    if (model === '' || model === 'unknown' || worker.models.length === 0) return true
    return worker.models.some((card) => card.id === this.control.canonicalModel(model))
  }

  private publish(workers: readonly WorkerEntry[]): void {
    this.table = { workers }
    for (const listener of this.listeners) listener(this.table)
  }
}

type Outcome = 'succeeded' | 'failed' | 'none'

const index = fc.nat({ max: 20 })
const step = fc.oneof(
  { weight: 2, arbitrary: index.map((shape) => (fleet: Fleet) => fleet.add(shape)) },
  { weight: 1, arbitrary: index.map((at) => (fleet: Fleet) => fleet.remove(at)) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        index,
        fc.constantFrom<WorkerStatus>('ready', 'ready', 'ready', 'not_ready', 'failed', 'draining'),
      )
      .map(
        ([at, status]) =>
          (fleet: Fleet) =>
            fleet.setStatus(at, status),
      ),
  },
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        fc.nat({ max: 2 }),
        fc.constantFrom(...MODELS),
        fc.constantFrom(...LEGS),
        fc.array(fc.nat({ max: MAX_WORKERS - 1 }), { maxLength: 3 }),
      )
      .map(
        ([thread, model, leg, tried]) =>
          (fleet: Fleet) =>
            fleet.pick(thread, model, leg, tried),
      ),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(index, fc.constantFrom<Outcome>('succeeded', 'failed', 'failed', 'none')).map(
      ([at, outcome]) =>
        (fleet: Fleet) =>
          fleet.end(at, outcome),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(300, 1_000).map((ms) => (fleet: Fleet) => {
      fleet.nowMs += ms
    }),
  },
)

test.each([
  'random',
  'round_robin',
  'passthrough',
  'least_load',
  'power_of_two',
  'cache_aware',
  'bucket',
  'manual',
  'consistent_hashing',
  'prefix_hash',
])(
  'whatever happens in whatever order, under %s: counts equal the attempts held, only available workers that serve the leg of the model are picked, and no row in use is given away',
  (policy) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 40, maxLength: 120, size: 'max' }), (steps) => {
        const fleet = new Fleet(policy)
        for (const run of steps) {
          run(fleet)
          for (let slot = 0; slot < MAX_WORKERS; slot++) {
            for (const thread of fleet.threads) expect(thread.inFlight(slot)).toBe(fleet.heldOf(slot))
          }
        }
        while (fleet.held.length > 0) fleet.end(0, 'none')
        for (let slot = 0; slot < MAX_WORKERS; slot++) expect(fleet.control.inFlight(slot)).toBe(0)
        for (const thread of fleet.threads) thread.close()
      }),
      { numRuns: runs(25) },
    )
  },
  180_000,
)
