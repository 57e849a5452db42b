/** The permit queue of one thread, with fake timers. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ConcurrencyLimits, PermitQueue, type QueueEntry } from './permit-queue.ts'
import { SharedPermits } from './shared-permits.ts'

const LIMITS: ConcurrencyLimits = { maxConcurrentRequests: 1, queueSize: 2, queueTimeoutMs: 1_000 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function open(limits: ConcurrencyLimits = LIMITS): {
  queue: PermitQueue
  other: PermitQueue
  gate: SharedPermits
} {
  const memory = new SharedArrayBuffer(SharedPermits.bytes(2))
  const clock = () => Date.now()
  const gate = new SharedPermits(memory, 0, clock)
  return {
    gate,
    queue: new PermitQueue(gate, limits, clock),
    other: new PermitQueue(new SharedPermits(memory, 1, clock), limits, clock),
  }
}

const waits = (answer: boolean | QueueEntry): QueueEntry => {
  if (typeof answer === 'boolean') throw new Error(`did not wait: ${answer}`)
  return answer
}

describe('the queue of a thread', () => {
  test('admits, queues, rejects, and admits the oldest first', async () => {
    const { queue, gate } = open()
    expect(queue.enter()).toBe(true)
    const first = waits(queue.enter())
    const second = waits(queue.enter())
    expect(queue.enter()).toBe(false)
    queue.release()
    expect(await first.outcome).toBe('entered')
    expect(gate.use.waiting).toBe(1)
    queue.release()
    expect(await second.outcome).toBe('entered')
  })

  test('a wait ends at its deadline', async () => {
    const { queue, gate } = open()
    queue.enter()
    const waiter = waits(queue.enter())
    await vi.advanceTimersByTimeAsync(900)
    expect(gate.use.waiting).toBe(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(await waiter.outcome).toBe('timed_out')
    expect(gate.use).toEqual({ inUse: 1, waiting: 0 })
  })

  test('leaving frees a place in the queue, once', async () => {
    const { queue, gate } = open()
    queue.enter()
    const waiter = waits(queue.enter())
    waiter.leave()
    waiter.leave()
    expect(await waiter.outcome).toBe('left')
    expect(gate.use).toEqual({ inUse: 1, waiting: 0 })
  })

  test('leaving after admission releases nothing: the permit is held', async () => {
    const { queue, gate } = open()
    queue.enter()
    const waiter = waits(queue.enter())
    queue.release()
    waiter.leave()
    expect(await waiter.outcome).toBe('entered')
    expect(gate.use).toEqual({ inUse: 1, waiting: 0 })
  })

  test('a higher limit admits waiting requests at once, no limit admits all', async () => {
    const { queue } = open()
    queue.enter()
    const first = waits(queue.enter())
    const second = waits(queue.enter())
    queue.setLimits({ ...LIMITS, maxConcurrentRequests: 2 })
    expect(await first.outcome).toBe('entered')
    queue.setLimits({ ...LIMITS, maxConcurrentRequests: 0 })
    expect(await second.outcome).toBe('entered')
  })

  test('a permit released on one thread wakes the other without waiting for its timer', async () => {
    const { queue, other } = open()
    queue.enter()
    const waiter = waits(other.enter())
    vi.useRealTimers()
    queue.release()
    expect(await waiter.outcome).toBe('entered')
  })

  test('no timer runs while the queue is empty', () => {
    const { queue } = open()
    queue.enter()
    expect(vi.getTimerCount()).toBe(0)
    const waiter = waits(queue.enter())
    expect(vi.getTimerCount()).toBe(1)
    waiter.leave()
    expect(vi.getTimerCount()).toBe(0)
  })
})
