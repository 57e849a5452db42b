/** Sessions and request headers that policies use: headers are available on every route, and forwarded to workers only if allowed. */
import { describe, expect, test } from 'vitest'
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

const messages = [{ role: 'user', content: 'hi' }]

describe('the session of a request', () => {
  const PARTS: [string, object, Record<string, string>][] = [
    ['the session of Codex', {}, { 'session-id': 'S' }],
    ['the session of an older Codex', {}, { session_id: 'S' }],
    ['the session of Claude Code', {}, { 'x-claude-code-session-id': 'S' }],
    ['prompt_cache_key', { prompt_cache_key: 'S' }, {}],
    ['user', { user: 'S', prompt_cache_key: null }, {}],
  ]

  test.each(PARTS)('%s keeps it on one worker, on every route', async (_name, members, headers) => {
    const fleet = await openFleet({
      workers: [{}, {}, {}, {}],
      kernel: { policy: 'round_robin' },
      plugins: { policies: { stickyRoutingKeys: true }, responses: {}, messages: {} },
    })
    const text = JSON.stringify({ model: 'test-model', max_tokens: 5, input: 'hi', messages, ...members })
    const homes = new Set<number>()
    for (let session = 0; session < 6; session++) {
      const own = Object.fromEntries(Object.entries(headers).map(([name]) => [name, `s${session}`]))
      const before = fleet.workers.map(countOf)
      for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/chat/completions'])
        await (await fleet.post(path, text.replaceAll('"S"', `"s${session}"`), own)).text()
      const busy = fleet.workers.flatMap((worker, index) => (countOf(worker) > before[index] ? [index] : []))
      expect(busy).toHaveLength(1)
      homes.add(busy[0])
    }
    expect(homes.size).toBeGreaterThan(1)
  })

  test('comes from the first configured source with a value', async () => {
    const fleet = await openFleet({
      workers: [{}, {}, {}, {}],
      kernel: { policy: 'manual' },
      plugins: {
        policies: {
          sessionKeys: ['body:conversation', 'header:x-team'],
          manual: { assignmentMode: 'min_group' },
        },
      },
    })
    const homeOf = async (members: object, headers: Record<string, string>) => {
      const before = fleet.workers.map(countOf)
      await (await fleet.post('/v1/chat/completions', { ...body, ...members }, headers)).text()
      return fleet.workers.findIndex((worker, index) => countOf(worker) > before[index])
    }
    const conversation = { conversation: { id: 'conv_1' } }
    const home = await homeOf(conversation, { 'x-team': 'a' })
    const teamB = await homeOf({}, { 'x-team': 'b' })
    expect(teamB).not.toBe(home)
    expect(await homeOf(conversation, { 'x-team': 'b' })).toBe(home)
    expect(await homeOf({ conversation: '' }, { 'x-team': 'b' })).toBe(teamB)
    expect(await homeOf({ user: 'u', conversation: 7 }, { 'x-team': 'b' })).toBe(teamB)
  })
})
