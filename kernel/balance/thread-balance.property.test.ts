/** Random lives of a fleet on three threads, against what must hold after every step. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { balanceParts } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { RequestContext } from '../contracts/request.ts'
import type { WorkerEntry, WorkerStatus, WorkerTable } from '../contracts/worker.ts'
import { Counters, createCounters } from './counters.ts'
import { ThreadBalance } from './thread-balance.ts'
import type { Attempt } from './worker-balance.ts'

const MAX_WORKERS = 6
const MODELS = ['m', 'n', 'alias-of-m', 'unlisted', 'unknown', '']
const ctx = { bodyBytes: Buffer.alloc(0), header: () => undefined } as unknown as RequestContext

/** Control and two data threads over one buffer, with what a test must remember about them. */
class Fleet {
  readonly threads: ThreadBalance[]
  readonly held: Attempt[] = []
  private table: WorkerTable = { workers: [] }
  private readonly listeners: ((next: WorkerTable) => void)[] = []
  private registered = 0

  constructor(policy: string) {
    const buffer = createCounters(MAX_WORKERS, 2)
    const table = {
      current: this.table,
      onChange: (listener: (next: WorkerTable) => void) => void this.listeners.push(listener),
    }
    this.threads = [0, 1, 2].map(
      (thread) =>
        new ThreadBalance({
          ...balanceParts(),
          counters: new Counters(buffer, thread),
          table,
          defaultPolicy: policy,
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
      expect(blocked.size).toBe(MAX_WORKERS) // refused only when every row is taken or still counts
      return
    }
    expect(this.heldOf(slot)).toBe(0)
    expect(this.workers.some((worker) => worker.slot === slot)).toBe(false)
    const models = [[], ['n'], [{ id: 'm', aliases: ['alias-of-m'] }], ['m', 'n']][shape % 4]
    const id = `id-${this.registered++}`
    const added = workerEntry({ slot, id, models, priority: 50 + (shape % 2), cost: shape })
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

  pick(thread: number, model: string, tried: readonly number[]): void {
    const isReady = (worker: WorkerEntry) => this.control.status(worker.slot) === 'ready'
    let attempt: Attempt
    try {
      attempt = this.threads[thread].pick(ctx, model, { excluded: tried })
    } catch (error) {
      expect(['no_workers', 'model_not_found', 'no_available_workers']).toContain(
        (error as { code: string }).code,
      )
      expect(this.workers.some((worker) => isReady(worker) && this.serves(worker, model))).toBe(false)
      return
    }
    this.held.push(attempt)
    expect(this.workers).toContain(attempt.worker)
    expect(isReady(attempt.worker)).toBe(true)
    expect(this.serves(attempt.worker, model)).toBe(true)
    if (tried.includes(attempt.worker.slot)) {
      const others = this.workers.filter((worker) => isReady(worker) && this.serves(worker, model))
      expect(others.every((worker) => tried.includes(worker.slot))).toBe(true)
    }
  }

  release(index: number): void {
    const [attempt] = this.held.splice(index % Math.max(this.held.length, 1), 1)
    attempt?.release()
    attempt?.release()
  }

  private serves(worker: WorkerEntry, model: string): boolean {
    if (model === '' || model === 'unknown' || worker.models.length === 0) return true
    return worker.models.some((card) => card.id === this.control.canonicalModel(model))
  }

  private publish(workers: readonly WorkerEntry[]): void {
    this.table = { workers }
    for (const listener of this.listeners) listener(this.table)
  }
}

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
        fc.array(fc.nat({ max: MAX_WORKERS - 1 }), { maxLength: 3 }),
      )
      .map(
        ([thread, model, tried]) =>
          (fleet: Fleet) =>
            fleet.pick(thread, model, tried),
      ),
  },
  { weight: 4, arbitrary: index.map((at) => (fleet: Fleet) => fleet.release(at)) },
)

test.each(['random', 'round_robin', 'least_load', 'power_of_two'])(
  'whatever happens in whatever order, under %s: counts equal the attempts held, only ready workers that serve the model are picked, and no row in use is given away',
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
        while (fleet.held.length > 0) fleet.release(0)
        for (let slot = 0; slot < MAX_WORKERS; slot++) expect(fleet.control.inFlight(slot)).toBe(0)
      }),
      { numRuns: 60 },
    )
  },
)
