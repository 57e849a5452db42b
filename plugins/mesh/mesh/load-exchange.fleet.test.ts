/**
 * least_load behind several gateways with uneven traffic, in virtual time: with the counts of the others, workers are
 * loaded more evenly than if each gateway knows its own requests only.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { MeshChannel, MeshMember } from '#kernel'
import {
  type FleetWorker,
  fleetWorker,
  PolicyThread,
  pickSlot,
  seededRandom,
} from '../../../test/support/policy-fleet.ts'
import { LoadExchange } from './load-exchange.ts'

const WORKERS = 8
/** Mean requests in flight per worker. */
const LOAD = 6
const SERVICE_MS = 2_000
const STEP_MS = 10
const WARM_UP_MS = 5_000
const END_MS = 25_000
const SAMPLE_MS = 50

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

type Listener = (message: Buffer, from: string) => void

/** One gateway: its policy, and what it knows of the requests at each worker. */
class Gateway {
  readonly own = new Int32Array(WORKERS)
  private readonly elsewhere = new Int32Array(WORKERS)
  private readonly fleet: FleetWorker[]
  private readonly policy = new PolicyThread().policy('least_load')

  constructor(name: string, listeners: Map<string, Listener>, members: readonly MeshMember[]) {
    this.fleet = Array.from({ length: WORKERS }, (_, slot) => fleetWorker(slot))
    const channel: MeshChannel = {
      send: (message) => {
        for (const [other, listener] of listeners) if (other !== name) listener(message, name)
      },
      onMessage: (listener) => listeners.set(name, listener),
    }
    const exchange = new LoadExchange(
      { members, channel: () => channel, onMembers: () => undefined },
      {
        workers: this.fleet.map(({ entry }) => entry),
        inFlight: (slot) => this.own[slot],
        inFlightElsewhere: (slot) => this.elsewhere[slot],
        setInFlightElsewhere: (slot, count) => {
          this.elsewhere[slot] = count
        },
      },
    )
    exchange.start()
  }

  pick(): number {
    for (const worker of this.fleet) {
      const { slot } = worker.entry
      worker.inFlight = this.own[slot] + this.elsewhere[slot]
    }
    return pickSlot(this.policy, this.fleet)
  }
}

/** Each gateway has twice the traffic of the next one. @returns mean distance of the busiest worker from the mean load */
function simulate(count: number, isShared: boolean): number {
  const random = seededRandom(7)
  const members = Array.from({ length: count }, (_, i): MeshMember => {
    const name = `gw-${i}`
    return { name, status: 'Alive', incarnation: 1, address: '', software: '', inFlight: 0, config: {} }
  })
  // Gateways that share nothing know no other member.
  const listeners = new Map<string, Listener>()
  const gateways = members.map(({ name }) => new Gateway(name, listeners, isShared ? members : []))
  const shares = members.map((_, i) => 2 ** -Math.min(i, 4))
  const sum = shares.reduce((total, share) => total + share, 0)
  const perStep = ((WORKERS * LOAD) / SERVICE_MS) * STEP_MS
  const ends: { atMs: number; gateway: Gateway; slot: number }[][] = []
  const totals = new Int32Array(WORKERS)
  let excess = 0
  let samples = 0
  for (let step = 0; step < END_MS / STEP_MS; step++) {
    for (const { gateway, slot } of ends[step] ?? []) {
      gateway.own[slot]--
      totals[slot]--
    }
    for (const [i, gateway] of gateways.entries()) {
      let expected = (perStep * shares[i]) / sum
      for (; random() < expected; expected--) {
        const slot = gateway.pick()
        gateway.own[slot]++
        totals[slot]++
        const steps = 1 + Math.floor((-Math.log(1 - random()) * SERVICE_MS) / STEP_MS)
        ends[step + steps] ??= []
        ends[step + steps].push({ atMs: step + steps, gateway, slot })
      }
    }
    vi.advanceTimersByTime(STEP_MS)
    const atMs = step * STEP_MS
    if (atMs < WARM_UP_MS || atMs % SAMPLE_MS !== 0) continue
    const mean = totals.reduce((total, load) => total + load, 0) / WORKERS
    excess += Math.max(...totals) - mean
    samples++
  }
  vi.clearAllTimers()
  return excess / samples
}

test.each([2, 3, 10, 30])('%i gateways', (count) => {
  const blind = simulate(count, false)
  const shared = simulate(count, true)
  console.log(
    `${count} gateways: the busiest worker has ${shared.toFixed(2)} requests above the mean, blind ${blind.toFixed(2)}`,
  )
  expect(shared).toBeLessThan(0.9 * blind)
})
