import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { KvEvent, KvEventBatch, KvEventFeed, KvEventListener, WorkerEntry } from '#kernel'
import {
  engineLoad,
  type FleetWorker,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../../test/support/policy-fleet.ts'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { KvEventMonitor } from './kv-event-monitor.ts'

const SIZE = 16

/** A subscription of the monitor. */
interface Opened {
  readonly workerId: string
  readonly from: number
  readonly listener: KvEventListener
  isClosed: boolean
}

class FakeFeed implements KvEventFeed {
  readonly opened: Opened[] = []

  covers({ connectionMode }: WorkerEntry): boolean {
    return connectionMode === 'grpc'
  }

  subscribe(worker: WorkerEntry, from: number, listener: KvEventListener) {
    const opened = { workerId: worker.id, from, listener, isClosed: false }
    this.opened.push(opened)
    return {
      close: () => {
        opened.isClosed = true
      },
    }
  }

  get last(): Opened {
    return this.opened[this.opened.length - 1]
  }

  send(slot: number, sequence: number, ...events: KvEvent[]): void {
    this.tell(slot, { sequence, events })
  }

  tell(slot: number, batch: KvEventBatch): void {
    const open = this.opened.findLast(({ workerId, isClosed }) => workerId === `worker-${slot}` && !isClosed)
    open?.listener.onBatch(batch)
  }
}

const tokens = Uint32Array.from({ length: SIZE * 10 }, (_, i) => i)

/** The first blocks of the prompt used by all tests. */
function stored(blocks: number): KvEvent {
  return {
    kind: 'stored',
    parentHash: null,
    blockSize: SIZE,
    blocks: Array.from({ length: blocks }, (_, i) => ({
      hash: BigInt(i + 1),
      tokenIds: tokens.slice(i * SIZE, (i + 1) * SIZE),
    })),
  }
}

const grpc = (slot: number) => workerEntry({ slot, models: ['m'], connectionMode: 'grpc' })
const request = pickRequest({ tokenIds: tokens })

let feed: FakeFeed
let thread: PolicyThread
let monitor: KvEventMonitor
let fleet: FleetWorker[]
let policy: ReturnType<PolicyThread['policy']>

beforeEach(() => {
  vi.useFakeTimers()
  feed = new FakeFeed()
  thread = new PolicyThread()
  monitor = new KvEventMonitor({ feed, indexes: thread.state.kvIndexes, metrics: thread.metrics })
  fleet = [0, 1, 2].map((slot) => fleetWorker(slot))
  policy = thread.policy('cache_aware')
  monitor.update([0, 1, 2].map(grpc))
})

afterEach(() => {
  policy.close?.()
  monitor.close()
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

const failures = (slot: number, reason: string) =>
  thread.metric('weir_kv_event_subscription_failures_total', `http://worker-${slot}:8000`, reason)

describe('cache_aware with engine events', () => {
  test('a worker with 8 matching blocks beats one with 3', () => {
    feed.send(1, 1, stored(3))
    feed.send(2, 1, stored(8))
    fleet[2].inFlight = 20
    expect(pickSlot(policy, fleet, request)).toBe(2)
    expect(policy.explain?.()).toBe('8 cached blocks on slot 2')
  })

  test('equal scores go to the worker with fewer requests in flight, then with fewer blocks', () => {
    feed.send(0, 1, stored(4))
    feed.send(1, 1, stored(4))
    fleet[0].inFlight = 2
    fleet[1].inFlight = 1
    expect(pickSlot(policy, fleet, request)).toBe(1)
    fleet[0].inFlight = 1
    feed.send(1, 2, {
      kind: 'stored',
      parentHash: null,
      blockSize: SIZE,
      blocks: [{ hash: 50n, tokenIds: tokens.slice(1, 17) }],
    })
    expect(pickSlot(policy, fleet, request)).toBe(0)
  })

  test('removed and cleared blocks change the pick', () => {
    feed.send(0, 1, stored(6))
    feed.send(1, 1, stored(3))
    expect(pickSlot(policy, fleet, request)).toBe(0)
    feed.send(0, 2, { kind: 'removed', hashes: [3n, 4n, 5n, 6n] })
    expect(pickSlot(policy, fleet, request)).toBe(1)
    feed.send(1, 2, { kind: 'cleared' })
    expect(pickSlot(policy, fleet, request)).toBe(0)
  })

  test('without overlap the least loaded worker is picked, and nothing is stored', () => {
    feed.send(0, 1, stored(1))
    const other = pickRequest({ tokenIds: tokens.slice(5) })
    fleet[0].inFlight = 1
    fleet[1].inFlight = 1
    expect(pickSlot(policy, fleet, other)).toBe(2)
    fleet[2].inFlight = 2
    expect(pickSlot(policy, fleet, other)).not.toBe(2)
    expect(thread.metric('weir_cache_aware_policy_branch_total', 'event_miss')).toBe(2)
  })

  test('uneven load overrides it, and an unavailable worker is skipped', () => {
    feed.send(0, 1, stored(8))
    feed.send(1, 1, stored(3))
    fleet[0].inFlight = 65
    expect(pickSlot(policy, fleet, request)).not.toBe(0)
    fleet[0].inFlight = 0
    fleet[0].isAvailable = false
    expect(pickSlot(policy, fleet, request)).toBe(1)
    fleet[0].load = engineLoad({ kvUsage: 1 })
  })
})

describe('the event stream of an engine', () => {
  test('a gap reopens the stream from the last sequence, and duplicates are ignored', () => {
    const [first] = feed.opened
    expect(first.from).toBe(0)
    feed.send(0, 7, stored(2))
    feed.send(0, 9, { kind: 'cleared' })
    expect(first.isClosed).toBe(true)
    expect(feed.last.from).toBe(7)
    expect(failures(0, 'gap')).toBe(1)
    // The replay starts with known events and clears nothing.
    feed.send(0, 7, { kind: 'cleared' })
    feed.send(0, 8, stored(5))
    feed.send(0, 8, { kind: 'cleared' })
    expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(5)
    feed.send(0, 9, { kind: 'removed', hashes: [5n] })
    expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(4)
    expect(feed.opened).toHaveLength(4)
  })

  test('events of a closed stream are ignored', () => {
    const [first] = feed.opened
    feed.send(0, 7, stored(2))
    feed.send(0, 9)
    first.listener.onBatch({ sequence: 8, events: [{ kind: 'cleared' }] })
    first.listener.onEnd('closed')
    expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(2)
    expect(vi.getTimerCount()).toBe(1) // the sweep of the policy
  })

  test('a gap that the engine cannot replay clears that worker, once', () => {
    feed.send(0, 7, stored(6))
    feed.send(0, 20, stored(2))
    feed.send(0, 20, stored(2))
    expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(2)
    feed.send(0, 21, { kind: 'removed', hashes: [2n] })
    expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(1)
    expect(failures(0, 'gap')).toBe(1)
  })
})

test('a snapshot replaces everything known, for any sequence numbers', () => {
  const blocksOf = (slot: number) => thread.state.kvIndexes.find('m')?.blocksOf(slot)
  feed.send(0, 900, stored(6))
  feed.tell(0, { sequence: 3, events: [{ kind: 'cleared' }, stored(2)], snapshot: 'first' })
  expect(blocksOf(0)).toBe(2)
  feed.tell(0, { sequence: 4, events: [stored(4)], snapshot: 'next' })
  feed.send(0, 5, { kind: 'removed', hashes: [4n] })
  expect(blocksOf(0)).toBe(3)
  // A large jump of sequence numbers is no gap either.
  feed.tell(0, { sequence: 70, events: [stored(1)], snapshot: 'first' })
  expect([blocksOf(0), feed.opened.length]).toEqual([1, 3])
  feed.send(0, 71, stored(5))
  expect(blocksOf(0)).toBe(5)
  expect(failures(0, 'gap')).toBe(0)
})

test('a stream that ends is reopened after 100 ms, then twice as long each time, up to 30 s', () => {
  feed.send(0, 3, stored(1))
  const waits: number[] = []
  for (let i = 0; i < 12; i++) {
    const before = feed.opened.length
    feed.opened.findLast(({ workerId }) => workerId === 'worker-0')?.listener.onEnd('failed')
    let waitedMs = 0
    for (; feed.opened.length === before; waitedMs += 50) vi.advanceTimersByTime(50)
    waits.push(waitedMs)
    expect(feed.last.from).toBe(3)
  }
  expect(waits.slice(0, 4)).toEqual([100, 200, 400, 800])
  expect(waits.slice(-2)).toEqual([30_000, 30_000])
  // A batch resets the back-off.
  feed.send(0, 4)
  feed.last.listener.onEnd('closed')
  const before = feed.opened.length
  vi.advanceTimersByTime(100)
  expect(feed.opened).toHaveLength(before + 1)
})

test('an engine without such events is not subscribed again', () => {
  feed.opened[0].listener.onEnd('unsupported')
  vi.advanceTimersByTime(3_600_000)
  monitor.update([0, 1, 2].map(grpc))
  expect(feed.opened).toHaveLength(3)
  expect(failures(0, 'unsupported')).toBe(1)
})

test('only gRPC workers are subscribed; removed workers and models without workers are discarded', () => {
  feed.send(0, 1, stored(4))
  feed.send(1, 1, stored(4))
  feed.opened[0].listener.onEnd('closed')
  monitor.update([grpc(1), workerEntry({ slot: 5, models: ['m'] })])
  expect(failures(0, 'closed')).toBe(0)
  expect(feed.opened.map(({ isClosed }) => isClosed)).toEqual([true, false, true])
  expect(vi.getTimerCount()).toBe(1) // the sweep of the policy: nobody asks the worker that left again
  expect(thread.state.kvIndexes.find('m')?.blocksOf(0)).toBe(0)
  expect(thread.state.kvIndexes.find('m')?.blocksOf(1)).toBe(4)
  monitor.update([])
  expect(thread.state.kvIndexes.find('m')).toBeNull()
})

test('events before the subscription is returned are processed', () => {
  const eager: KvEventFeed = {
    covers: () => true,
    subscribe(_worker, from, listener) {
      if (from === 0) listener.onBatch({ sequence: 1, events: [stored(3)] })
      if (from === 0) listener.onBatch({ sequence: 5, events: [] })
      return { close: () => {} }
    },
  }
  const early = new KvEventMonitor({ feed: eager, indexes: thread.state.kvIndexes, metrics: thread.metrics })
  early.update([grpc(9)])
  expect(thread.state.kvIndexes.find('m')?.blocksOf(9)).toBe(3)
  early.close()
})
