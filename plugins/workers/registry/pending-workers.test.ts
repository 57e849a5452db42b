import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { PendingWorkers } from '#kernel'
import { PendingWorkersPublisher } from './pending-workers.ts'
import { type Reservation, toWorkerSpec } from './worker-spec.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => {
  vi.useRealTimers()
})

function open() {
  const reservations: Reservation[] = []
  const published: PendingWorkers[] = []
  const pending = new PendingWorkersPublisher({
    modelAliases: { alias: 'm' },
    discoveryMs: 30_000,
    reservations: () => reservations,
    publish: async (next) => void published.push(next),
  })
  const reserve = (origin: Reservation['origin'], models?: { id: string }[]) => {
    const url = `http://e:${reservations.length + 1}`
    const spec = toWorkerSpec({ url, models })
    reservations.push({ id: url, spec, origin, reservedAtMs: performance.now() })
    void pending.publish()
  }
  return { reservations, published, pending, reserve }
}

const settle = () => vi.advanceTimersByTimeAsync(100)

test('workers that are reserved in one turn are published together, with models and aliases', async () => {
  const { published, pending, reserve } = open()
  pending.setConfigured(2)
  reserve('config', [{ id: 'm' }])
  reserve('config', [{ id: 'n' }])
  reserve('api', [{ id: 'm' }])
  await settle()
  expect(published[0]).toEqual({
    count: 3,
    problem: null,
    models: ['m', 'alias', 'n'],
    isDiscovering: false,
    configured: 2,
    configuredPending: 2,
  })
  pending.stop()
})

test('a worker without models may serve any for the discovery time, each from its own reservation', async () => {
  const { published, pending, reserve } = open()
  reserve('config')
  await vi.advanceTimersByTimeAsync(20_000)
  reserve('api', [])
  await vi.advanceTimersByTimeAsync(29_900)
  expect(published.at(-1)).toMatchObject({ count: 2, isDiscovering: true })
  await settle()
  expect(published.at(-1)).toMatchObject({ count: 2, isDiscovering: false })
  pending.stop()
})

test('a worker that joins the table counts as pending until every thread has the table', async () => {
  const { reservations, published, pending, reserve } = open()
  reserve('config')
  await settle()
  const [reservation] = reservations.splice(0)
  const table = Promise.withResolvers<void>()
  const joined = pending.whileJoining(reservation, () => table.promise)
  await Promise.all([pending.publish(), settle()])
  expect(published.at(-1)).toMatchObject({ count: 1, configuredPending: 1 })
  table.resolve()
  await Promise.all([joined, settle()])
  expect(published.at(-1)).toMatchObject({ count: 0, configuredPending: 0 })
  pending.stop()
})
