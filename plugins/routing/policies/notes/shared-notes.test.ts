/** Gateways that share prefixes and sessions over a bus in this process: each has its own memory, and other rows. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Host, MeshChannel, MeshService } from '#kernel'
import { SharedMemory } from '../../../../kernel/threads/shared-memory.ts'
import type { PolicySettings } from '../../../../test/support/policies.ts'
import {
  chatRequest,
  type FleetWorker,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../../test/support/policy-fleet.ts'
import { openNoteExchanges, openNoteRings } from './shared-notes.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

type Listener = (message: Buffer, from: string) => void

/** Messages of all gateways by channel; sent at the next turn, as by an engine. */
class Bus {
  readonly listeners = new Map<string, { owner: string; listener: Listener }[]>()
  /** Messages are lost. */
  isCut = false

  channel(name: string, owner: string): MeshChannel {
    const all = this.listeners.get(name) ?? []
    this.listeners.set(name, all)
    return {
      send: (message) => {
        if (this.isCut) return
        const others = all.filter((other) => other.owner !== owner)
        setTimeout(() => others.forEach(({ listener }) => void listener(message, owner)), 0)
      },
      onMessage: (listener) => {
        all.push({ owner, listener })
      },
    }
  }
}

/** A data thread and control of one gateway. */
class Gateway {
  readonly control: PolicyThread
  private readonly data: PolicyThread
  private readonly policies = new Map<string, ReturnType<PolicyThread['policy']>>()
  private readonly fleet: readonly FleetWorker[]
  readonly close: () => void

  /** @param ids of its workers, in order of their rows */
  constructor(
    bus: Bus,
    ids: readonly string[],
    settings: PolicySettings = {},
    shares: (concern: string) => boolean = () => true,
  ) {
    const memory = new SharedMemory()
    const name = ids.join()
    const mesh = { shares, channel: (channel: string) => bus.channel(channel, name) }
    this.fleet = ids.map((id, slot) => {
      const worker = fleetWorker(slot, { id: `${id} at ${name}` })
      return { ...worker, entry: { ...worker.entry, url: `http://${id}` } }
    })
    this.control = new PolicyThread(settings, memory)
    const shared = (block: string, bytes: number) => memory.block(block, bytes)
    const host = {
      isControl: true,
      find: () => mesh as unknown as MeshService,
      shared,
      metrics: this.control.metrics,
      balance: { workers: this.fleet.map(({ entry }) => entry) },
      replica: () => ({ onChange: () => undefined }),
    } as unknown as Host
    const rings = openNoteRings(host)
    const exchanges = openNoteExchanges(host, rings, this.control.state)
    exchanges.start()
    this.close = () => exchanges.close()
    const dataHost = { isControl: false, find: () => undefined, shared }
    this.data = new PolicyThread(settings, memory, openNoteRings(dataHost))
  }

  ask(content: string): string {
    return this.pick('cache_aware', chatRequest(content))
  }

  join(session: string): string {
    return this.pick('manual', pickRequest({ headers: { 'x-weir-routing-key': session } }))
  }

  setLoad(id: string, inFlight: number): void {
    this.worker(id).inFlight = inFlight
  }

  setAvailable(id: string, isAvailable: boolean): void {
    this.worker(id).isAvailable = isAvailable
  }

  notes(kind: string, outcome: string): number {
    return this.control.metric('weir_policy_notes_total', kind, outcome)
  }

  private worker(id: string): FleetWorker {
    return this.fleet.find(({ entry }) => entry.url === `http://${id}`) as FleetWorker
  }

  /** @returns id of the worker */
  private pick(name: string, request: ReturnType<typeof pickRequest>): string {
    const policy = this.policies.get(name) ?? this.data.policy(name)
    this.policies.set(name, policy)
    return this.fleet[pickSlot(policy, this.fleet, request)].entry.url.slice('http://'.length)
  }
}

const tick = () => vi.advanceTimersByTime(150)
const text = (number: number) => `Conversation ${number * 7919}. ${'What else is there to say? '.repeat(60)}`

test('a prompt goes to the worker that another gateway has sent it to, within two ticks', () => {
  const bus = new Bus()
  const [a, b] = [new Gateway(bus, ['x', 'y', 'z']), new Gateway(bus, ['z', 'x', 'y'])]
  const homes = Array.from({ length: 100 }, (_, i) => a.ask(text(i)))
  expect(new Set(homes).size).toBe(3)
  tick()
  expect(Array.from({ length: 100 }, (_, i) => b.ask(`${text(i)} And then?`))).toEqual(homes)
  expect(b.notes('prefixes', 'received')).toBe(a.notes('prefixes', 'sent'))
})

test('what was learned is not sent on, and what is known is not sent again', () => {
  const bus = new Bus()
  const [a, b] = [new Gateway(bus, ['x', 'y']), new Gateway(bus, ['y', 'x'])]
  a.ask(text(1))
  tick()
  const sent = a.notes('prefixes', 'sent')
  expect(sent).toBeGreaterThan(10)
  a.ask(text(1))
  b.ask(text(1))
  tick()
  expect([a.notes('prefixes', 'sent'), b.notes('prefixes', 'sent')]).toEqual([sent, 0])
})

test('notes of workers that a gateway does not have are skipped', () => {
  const bus = new Bus()
  const [a, b] = [new Gateway(bus, ['x']), new Gateway(bus, ['y', 'z'])]
  for (let i = 0; i < 20; i++) a.join(`session-${i}`)
  a.ask(text(1))
  tick()
  expect(b.notes('sessions', 'received')).toBe(20)
  expect(b.control.metric('weir_manual_policy_cache_entries')).toBe(0)
})

test('a session that has moved while its worker was away moves and returns on all gateways', () => {
  const bus = new Bus()
  const [a, b] = [new Gateway(bus, ['x', 'y', 'z']), new Gateway(bus, ['y', 'z', 'x'])]
  const home = a.join('s')
  a.setAvailable(home, false)
  const refuge = a.join('s')
  tick()
  expect(b.join('s')).toBe(home)
  b.setAvailable(home, false)
  expect(b.join('s')).toBe(refuge)
  expect(b.notes('sessions', 'sent')).toBe(0)
})

test('gateways that choose differently at the same time agree afterwards', () => {
  const bus = new Bus()
  const settings = { manual: { assignmentMode: 'min_load' } } as const
  const [a, b] = [new Gateway(bus, ['x', 'y'], settings), new Gateway(bus, ['y', 'x'], settings)]
  a.setLoad('x', 1)
  b.setLoad('y', 1)
  for (let i = 0; i < 10; i++) expect([a.join(`s-${i}`), b.join(`s-${i}`)]).toEqual(['y', 'x'])
  tick()
  const homes = Array.from({ length: 10 }, (_, i) => [a.join(`s-${i}`), b.join(`s-${i}`)])
  for (const [first, second] of homes) expect(first).toBe(second)
})

test('new sessions have the same worker without a message, spread over all workers', () => {
  const bus = new Bus()
  bus.isCut = true
  const [a, b] = [new Gateway(bus, ['x', 'y', 'z']), new Gateway(bus, ['z', 'x', 'y'])]
  const counts = new Map<string, number>()
  for (let i = 0; i < 3_000; i++) {
    const home = a.join(`session-${i}`)
    expect(b.join(`session-${i}`)).toBe(home)
    counts.set(home, (counts.get(home) ?? 0) + 1)
  }
  for (const id of ['x', 'y', 'z']) {
    expect(counts.get(id)).toBeGreaterThan(850)
    expect(counts.get(id)).toBeLessThan(1_150)
  }
})

test('more notes than a tick may apply are dropped', () => {
  const bus = new Bus()
  const [a, b] = [new Gateway(bus, ['x', 'y']), new Gateway(bus, ['y', 'x'])]
  for (let i = 0; i < 1_000; i++) a.ask(text(i))
  vi.advanceTimersByTime(5_000)
  const sum = b.notes('prefixes', 'received') + b.notes('prefixes', 'dropped')
  expect(sum).toBe(a.notes('prefixes', 'sent'))
  expect(a.notes('prefixes', 'sent')).toBeGreaterThan(15_000)
})

test('what is not shared is neither noted nor sent', () => {
  const bus = new Bus()
  const onlySessions = (concern: string) => concern === 'sessions'
  const [a, b] = [new Gateway(bus, ['x', 'y'], {}, onlySessions), new Gateway(bus, ['y', 'x'])]
  a.ask(text(1))
  a.join('s')
  tick()
  expect([a.notes('prefixes', 'sent'), a.notes('sessions', 'sent')]).toEqual([0, 1])
  expect([b.notes('prefixes', 'received'), b.notes('sessions', 'received')]).toEqual([0, 1])
})

test('no timer stays when the exchange is closed, and none runs without a mesh that shares', () => {
  const bus = new Bus()
  const gateway = new Gateway(bus, ['x'])
  gateway.close()
  expect(vi.getTimerCount()).toBe(0)
  new Gateway(bus, ['y'], {}, () => false)
  expect(vi.getTimerCount()).toBe(0)
})
