/** Gateways that report their requests to each other, on a bus in this process. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { MeshChannel, MeshMember, WorkerEntry } from '#kernel'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { decodeLoads, encodeLoads, LoadExchange } from './load-exchange.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const memberOf = (name: string, status: MeshMember['status']): MeshMember => {
  return { name, status, incarnation: 1, address: '', software: '', inFlight: 0, config: {} }
}

/** One gateway. The rows of its workers differ from those of others. */
class Peer {
  readonly own = new Map<number, number>()
  readonly elsewhere = new Map<number, number>()
  workers: WorkerEntry[]
  readonly exchange: LoadExchange
  /** Messages that reach it are lost. */
  isDeaf = false
  sent = 0
  listener: (message: Buffer, from: string) => void = () => undefined
  membersChanged: () => void = () => undefined

  constructor(mesh: Mesh, name: string, firstSlot: number, ids: readonly string[]) {
    this.workers = ids.map((id, i) =>
      workerEntry({ slot: firstSlot + i, id: `${name}-${id}`, url: `http://${id}` }),
    )
    const channel: MeshChannel = {
      send: (message) => {
        this.sent++
        for (const peer of mesh.peers) if (peer !== this && !peer.isDeaf) peer.listener(message, name)
      },
      onMessage: (listener) => {
        this.listener = listener
      },
    }
    const { own, elsewhere } = this
    const peer = this
    this.exchange = new LoadExchange(
      {
        get members() {
          return mesh.members
        },
        channel: () => channel,
        onMembers: (listener) => {
          this.membersChanged = () => listener(mesh.members)
        },
      },
      {
        get workers() {
          return peer.workers
        },
        inFlight: (slot) => own.get(slot) ?? 0,
        inFlightElsewhere: (slot) => elsewhere.get(slot) ?? 0,
        setInFlightElsewhere: (slot, count) => elsewhere.set(slot, count),
      },
    )
    this.exchange.start()
  }

  /** Counts of the others, by row. */
  get seen(): number[] {
    return this.workers.map(({ slot }) => this.elsewhere.get(slot) ?? 0)
  }
}

class Mesh {
  readonly peers: Peer[] = []
  members: MeshMember[] = []

  join(name: string, ...ids: string[]): Peer {
    this.members.push(memberOf(name, 'Alive'))
    const peer = new Peer(this, name, this.peers.length * 5, ids)
    this.peers.push(peer)
    return peer
  }
}

test('each gateway has the sum over the others within a round, by worker', () => {
  const mesh = new Mesh()
  const [a, b, c] = [mesh.join('a', 'x', 'y'), mesh.join('b', 'y', 'x'), mesh.join('c', 'y', 'z')]
  a.own.set(0, 3)
  a.own.set(1, 4)
  b.own.set(5, 10)
  vi.advanceTimersByTime(250)
  expect([a.seen, b.seen, c.seen]).toEqual([
    [0, 10],
    [4, 3],
    [14, 0],
  ])
  a.own.clear()
  vi.advanceTimersByTime(250)
  expect([b.seen, c.seen]).toEqual([
    [0, 0],
    [10, 0],
  ])
})

test('nothing is sent while nothing is in flight, and once a second while nothing changes', () => {
  const mesh = new Mesh()
  const a = mesh.join('a', 'x')
  vi.advanceTimersByTime(10_000)
  expect(a.sent).toBe(0)
  a.own.set(0, 1)
  vi.advanceTimersByTime(10_000)
  expect(a.sent).toBe(10)
  a.own.set(0, 0)
  vi.advanceTimersByTime(10_000)
  expect(a.sent).toBe(11)
})

test('a gateway that is silent, down or has left counts nothing', () => {
  const mesh = new Mesh()
  const [a, b] = [mesh.join('a', 'x'), mesh.join('b', 'x')]
  a.own.set(0, 2)
  vi.advanceTimersByTime(250)
  expect(b.seen).toEqual([2])
  b.isDeaf = true
  vi.advanceTimersByTime(1_500)
  expect(b.seen).toEqual([2])
  vi.advanceTimersByTime(1_500)
  expect(b.seen).toEqual([0])
  b.isDeaf = false
  vi.advanceTimersByTime(1_000)
  expect(b.seen).toEqual([2])
  mesh.members = [memberOf('a', 'Down'), memberOf('b', 'Alive')]
  b.membersChanged()
  expect(b.seen).toEqual([0])
  vi.advanceTimersByTime(2_000)
  expect(b.seen).toEqual([0])
})

test('a worker that is added later, or moves to another row, has its count at once', () => {
  const mesh = new Mesh()
  const [a, b] = [mesh.join('a', 'x', 'y'), mesh.join('b', 'x')]
  a.own.set(0, 2)
  a.own.set(1, 3)
  vi.advanceTimersByTime(250)
  b.workers = [workerEntry({ slot: 9, url: 'http://y' }), workerEntry({ slot: 8, url: 'http://x' })]
  b.exchange.follow()
  expect(b.seen).toEqual([3, 2])
  a.own.set(1, 1)
  vi.advanceTimersByTime(250)
  expect(b.seen).toEqual([1, 2])
})

test('an exchange that has stopped sends nothing', () => {
  const mesh = new Mesh()
  const a = mesh.join('a', 'x')
  a.exchange.stop()
  a.own.set(0, 1)
  vi.advanceTimersByTime(5_000)
  expect(a.sent).toBe(0)
})

const entry = fc.tuple(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer({ min: 1, max: 0xffff }))

test('the parts together have all loads, and only the first replaces earlier ones', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 50 }), (entries) => {
      const loads = new Map(entries)
      const [part, ...others] = encodeLoads(loads)
      expect(others).toEqual([])
      expect(decodeLoads(part)).toEqual({ isFirst: true, loads })
    }),
  )
  const many = new Map(Array.from({ length: 17_000 }, (_, i) => [i * 1e9, 1 + (i % 100)]))
  const parts = encodeLoads(many)
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(65_536)
  const decoded = parts.map((part) => decodeLoads(part))
  expect(decoded.map((part) => part?.isFirst)).toEqual([true, false, false])
  expect(new Map(decoded.flatMap((part) => [...(part?.loads ?? [])]))).toEqual(many)
})

test('other versions and lengths are rejected', () => {
  const [part] = encodeLoads(new Map([[1, 2]]))
  expect(decodeLoads(part.subarray(1))).toBeNull()
  expect(decodeLoads(part.subarray(0, part.length - 1))).toBeNull()
  expect(decodeLoads(Buffer.alloc(0))).toBeNull()
  expect(decodeLoads(Buffer.from([2, 0]))).toBeNull()
  expect(decodeLoads(Buffer.from([1, 0]))).toEqual({ isFirst: true, loads: new Map() })
})
