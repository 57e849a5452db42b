/** Request headers that policies use are available on every route, and forwarded to workers only if allowed. */
import { expect, test } from 'vitest'
import type { ScriptedWorker } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const body = { model: 'test-model', messages: [] }

function open(kernel: object, policies: object = {}): Promise<Fleet> {
  return openFleet({ workers: [{}, {}, {}, {}], kernel: { ...kernel }, plugins: { policies } })
}

/** Indexes of the workers that received requests with these headers. */
async function takers(fleet: Fleet, times: number, headers: Record<string, string>): Promise<number[]> {
  const before = fleet.workers.map(countOf)
  for (let i = 0; i < times; i++) await fleet.post('/v1/chat/completions', body, headers)
  return fleet.workers.flatMap((worker, index) => (countOf(worker) > before[index] ? [index] : []))
}

const countOf = (worker: ScriptedWorker) => worker.requestsTo(CHAT).length

test.each(['cookie', 'x-forwarded-for', 'authorization', 'x-weir-routing-key', 'x-smg-routing-key'])(
  'consistent_hashing goes by %s',
  async (name) => {
    const fleet = await open({ policy: 'consistent_hashing', auth: 'off' })
    const homes = new Set<number>()
    for (let session = 0; session < 12; session++) {
      const home = await takers(fleet, 4, { [name]: `session=${session}` })
      expect(home).toHaveLength(1)
      homes.add(home[0])
    }
    expect(homes.size).toBeGreaterThan(1)
  },
)

test('cookies and addresses of clients are not forwarded, the routing key is', async () => {
  const fleet = await open({ policy: 'consistent_hashing' })
  const headers = {
    cookie: 'c=1',
    'x-forwarded-for': '10.0.0.1',
    'x-weir-target-worker': '2',
    'x-weir-routing-key': 'k',
  }
  expect(await takers(fleet, 3, headers)).toEqual([2])
  const [request] = fleet.workers[2].requestsTo(CHAT)
  const names = ['cookie', 'x-forwarded-for', 'x-weir-target-worker', 'x-weir-routing-key']
  expect(names.map((name) => request.header(name))).toEqual([undefined, undefined, undefined, 'k'])
})

test('stickyRoutingKeys makes any policy sticky for requests with a key', async () => {
  const sticky = await open({ policy: 'round_robin' }, { stickyRoutingKeys: true })
  expect(await takers(sticky, 8, { 'x-smg-routing-key': 'k' })).toHaveLength(1)
  expect(await takers(sticky, 8, {})).toEqual([0, 1, 2, 3])
  const plain = await open({ policy: 'round_robin' })
  expect(await takers(plain, 8, { 'x-smg-routing-key': 'k' })).toEqual([0, 1, 2, 3])
})
