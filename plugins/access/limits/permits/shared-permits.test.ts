/** The gate over several threads: never more permits than allowed, oldest first, nothing lost when a thread dies. */
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SharedPermits } from './shared-permits.ts'

const COLUMNS = 3

interface Clock {
  ms: number
}

function openViews(clock: Clock = { ms: 1 }): SharedPermits[] {
  const memory = new SharedArrayBuffer(SharedPermits.bytes(COLUMNS))
  return Array.from({ length: COLUMNS }, (_, column) => new SharedPermits(memory, column, () => clock.ms))
}

/** State of one thread next to the gate, as in the queue. */
class ThreadModel {
  readonly gate: SharedPermits
  permits = 0
  waiting: number[] = []

  constructor(gate: SharedPermits) {
    this.gate = gate
  }

  enter(limit: number, queueSize: number, order: number[]): void {
    const answer = this.gate.enter(limit, queueSize)
    if (answer === 'entered') this.permits++
    if (answer !== 'queued') return
    const ticket = this.gate.takeTicket()
    order.push(ticket)
    this.waiting.push(ticket)
    if (this.waiting.length === 1) this.gate.publishHead(ticket)
  }

  leave(at: number, order: number[]): void {
    if (this.waiting.length === 0) return
    const [ticket] = this.waiting.splice(at % this.waiting.length, 1)
    order.splice(order.indexOf(ticket), 1)
    this.gate.leave()
    this.gate.publishHead(this.waiting[0] ?? 0)
  }

  release(): void {
    if (this.permits === 0) return
    this.permits--
    this.gate.release()
  }

  /** @returns the admitted ticket */
  take(limit: number): number | undefined {
    if (!this.gate.takeNext(limit)) return undefined
    this.permits++
    const ticket = this.waiting.shift()
    this.gate.publishHead(this.waiting[0] ?? 0)
    return ticket
  }

  die(order: number[]): void {
    for (const ticket of this.waiting) order.splice(order.indexOf(ticket), 1)
    this.waiting = []
    this.permits = 0
    this.gate.reset()
  }
}

const step = fc.record({
  thread: fc.nat({ max: COLUMNS - 1 }),
  action: fc.constantFrom('enter', 'enter', 'release', 'leave', 'die'),
  at: fc.nat({ max: 10 }),
})

describe('permits over several threads', () => {
  test('10,000 mixed steps leak no permit, keep the order and both bounds', () => {
    let steps = 0
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 5 }),
        fc.array(step, { minLength: 100, maxLength: 100 }),
        (limit, queueSize, actions) => {
          const threads = openViews().map((gate) => new ThreadModel(gate))
          const order: number[] = []
          for (const { thread, action, at } of actions) {
            steps++
            const one = threads[thread]
            if (action === 'enter') one.enter(limit, queueSize, order)
            else if (action === 'leave') one.leave(at, order)
            else if (action === 'release') one.release()
            else one.die(order)
            letIn(threads, limit, order)
            const use = threads[0].gate.use
            expect(use.inUse).toBe(threads.reduce((sum, { permits }) => sum + permits, 0))
            expect(use.waiting).toBe(order.length)
            expect(use.inUse).toBeLessThanOrEqual(limit)
            expect(use.waiting).toBeLessThanOrEqual(queueSize)
            // The queue is empty while a permit is free.
            if (use.inUse < limit) expect(use.waiting).toBe(0)
          }
          for (const one of threads) one.die(order)
          expect(threads[0].gate.use).toEqual({ inUse: 0, waiting: 0 })
        },
      ),
      { numRuns: 100 },
    )
    expect(steps).toBe(10_000)
  })

  /** Threads try in a different order; the gate must still admit the oldest. */
  function letIn(threads: readonly ThreadModel[], limit: number, order: number[]): void {
    for (let progress = true; progress; ) {
      progress = false
      for (const one of threads.toReversed()) {
        const ticket = one.take(limit)
        if (ticket === undefined) continue
        expect(ticket).toBe(order.shift())
        progress = true
      }
    }
  }

  test('a new request waits behind queued ones, even if a permit is free', () => {
    const [a, b] = openViews()
    expect(a.enter(1, 5)).toBe('entered')
    expect(b.enter(1, 5)).toBe('queued')
    b.publishHead(b.takeTicket())
    a.release()
    expect(a.enter(1, 5)).toBe('queued')
    a.publishHead(a.takeTicket())
    expect(a.takeNext(1)).toBe(false)
    expect(b.takeNext(1)).toBe(true)
  })

  test('a thread that no longer serves its queue is skipped', () => {
    const clock = { ms: 1 }
    const [a, b] = openViews(clock)
    a.enter(1, 5)
    b.enter(1, 5)
    b.publishHead(b.takeTicket())
    a.release()
    a.enter(1, 5)
    a.publishHead(a.takeTicket())
    expect(a.takeNext(1)).toBe(false)
    clock.ms += 2_001
    expect(a.takeNext(1)).toBe(true)
  })

  test('tickets that wrap around keep their order', () => {
    const memory = new SharedArrayBuffer(SharedPermits.bytes(2))
    new Int32Array(memory)[1] = 0x7fff_fffe
    const [a, b] = [0, 1].map((column) => new SharedPermits(memory, column, () => 1))
    a.enter(1, 5)
    for (const gate of [a, b]) {
      gate.enter(1, 5)
      gate.publishHead(gate.takeTicket())
    }
    a.release()
    expect(b.takeNext(1)).toBe(false)
    expect(a.takeNext(1)).toBe(true)
  })
})

test('real threads never hold more than the limit, and all requests are admitted', async () => {
  const threads = 3
  const memory = new SharedArrayBuffer(SharedPermits.bytes(threads))
  const seen = new SharedArrayBuffer(8)
  const source = new URL('../../../../test/fixtures/threads/permit-thread.ts', import.meta.url)
  const ends = Array.from({ length: threads }, (_, column) => {
    const worker = new Worker(source, {
      workerData: { memory, seen, column, requests: 300, limit: 2 },
      execArgv: ['--conditions=weir-source'],
    })
    return new Promise<number>((resolve, reject) => {
      worker.on('message', resolve)
      worker.on('error', reject)
    })
  })
  expect(await Promise.all(ends)).toEqual([300, 300, 300])
  expect(new SharedPermits(memory, 0, () => 0).use).toEqual({ inUse: 0, waiting: 0 })
  // Maximum of concurrent permits, as counted by the holders.
  expect(new Int32Array(seen)[1]).toBe(2)
}, 180_000)
