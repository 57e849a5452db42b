/** Policies in front of real workers: effects visible to clients, settings and metrics. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { jsonAnswer, type ScriptedWorker } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const PREFIX = 'You are one of many sessions that begin with the same words. '.repeat(30)

const chatBody = (content: string, model = 'test-model') => ({ model, messages: [{ role: 'user', content }] })
const countOf = (worker: ScriptedWorker) => worker.requestsTo(CHAT).length

/** Indexes of the workers that received the requests of this work. */
async function takers(fleet: Fleet, work: () => Promise<unknown>): Promise<number[]> {
  const before = fleet.workers.map(countOf)
  await work()
  return fleet.workers.flatMap((worker, index) => Array(countOf(worker) - before[index]).fill(index))
}

async function open(
  kernel: object,
  count = 4,
  model: object = { id: 'test-model' },
  policies: object = {},
): Promise<Fleet> {
  const fleet = await openFleet({
    kernel: { ...kernel },
    plugins: { policies },
    workers: Array.from({ length: count }, () => ({ spec: { models: [model] } })),
  })
  for (const worker of fleet.workers) worker.script(CHAT, jsonAnswer({ choices: [] }))
  return fleet
}

const post = async (fleet: Fleet, body: object, headers?: Record<string, string>) => {
  const reply = await fleet.post('/v1/chat/completions', body, headers)
  return { status: reply.status, text: await reply.text() }
}

async function metric(fleet: Fleet, line: string): Promise<number> {
  const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
  return Number(found?.split(' ')[1] ?? 0)
}

test('cache_aware sends all turns of a conversation to one worker, other conversations to others', async () => {
  // No latencies are weighed: on a busy machine those of equal workers differ.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const fleet = await open({ policy: 'cache_aware' })
  const homes = new Set<number>()
  for (let session = 0; session < 4; session++) {
    const turns: string[] = []
    const got = await takers(fleet, async () => {
      for (let turn = 0; turn < 4; turn++) {
        turns.push(`${session} ${PREFIX}`)
        await post(fleet, chatBody(turns.join('\n')))
      }
    })
    expect(new Set(got).size).toBe(1)
    homes.add(got[0])
  }
  expect(homes.size).toBe(4)
  expect(await metric(fleet, 'weir_cache_aware_policy_branch_total{branch="hit"}')).toBe(12)
  const matched = await metric(fleet, 'weir_cache_aware_policy_matched_bytes_total')
  expect(matched).toBeGreaterThan(12 * PREFIX.length)
  expect(await metric(fleet, 'weir_cache_aware_policy_prompt_bytes_total')).toBeGreaterThan(matched)
})

test('an alias shares the affinity of its model', async () => {
  const fleet = await open({ policy: 'cache_aware' }, 4, { id: 'test-model', aliases: ['nickname'] })
  const [home] = await takers(fleet, () => post(fleet, chatBody(PREFIX)))
  await post(fleet, chatBody('another prompt'))
  expect(await takers(fleet, () => post(fleet, chatBody(PREFIX, 'nickname')))).toEqual([home])
})

test('a target worker that does not exist is rejected, even if others are free', async () => {
  const fleet = await open({ policy: 'consistent_hashing' }, 2)
  const target = (value: string) => post(fleet, chatBody('hi'), { 'x-smg-target-worker': value })
  expect(await takers(fleet, () => target('1'))).toEqual([1])
  const refused = await target('2')
  expect(refused.status).toBe(503)
  expect(JSON.parse(refused.text).error.code).toBe('no_suitable_worker')
  expect((await target('one')).status).toBe(503)
  // Each retry picks again.
  const misses = await metric(
    fleet,
    'weir_consistent_hashing_policy_branch_total{branch="target_worker_miss"}',
  )
  expect(misses).toBeGreaterThanOrEqual(2)
  expect(fleet.workers.map(countOf)).toEqual([0, 1])
})

test('min_group spreads new sessions evenly', async () => {
  const fleet = await open({ policy: 'manual' }, 3, undefined, { manual: { assignmentMode: 'min_group' } })
  const got = await takers(fleet, async () => {
    for (let i = 0; i < 30; i++) await post(fleet, chatBody('hi'), { 'x-weir-routing-key': `session-${i}` })
  })
  expect(got.toSorted()).toEqual([...Array(10).fill(0), ...Array(10).fill(1), ...Array(10).fill(2)])
  expect(await metric(fleet, 'weir_manual_policy_cache_entries')).toBe(30)
  expect(await metric(fleet, 'weir_manual_policy_branch_total{branch="vacant"}')).toBe(30)
})

test('prefix_hash keeps prompts with the same start on one worker without a tokenizer', async () => {
  const fleet = await open({ policy: 'prefix_hash' })
  const got = await takers(fleet, async () => {
    for (let i = 0; i < 6; i++) await post(fleet, chatBody(`${PREFIX} ${i}`))
  })
  expect(new Set(got).size).toBe(1)
  expect(await metric(fleet, 'weir_prefix_hash_policy_branch_total{branch="ring_hit"}')).toBe(6)
})

test.each(['bucket', 'passthrough', 'power_of_two', 'least_load', 'random', 'round_robin'])(
  'policy %s serves',
  async (policy) => {
    const fleet = await open({ policy }, 2)
    for (let i = 0; i < 5; i++) expect((await post(fleet, chatBody('hi'))).status).toBe(200)
  },
)

test.each([
  [{ cacheAware: { cacheTreshold: 0.5 } }, 'plugins.policies.cacheAware.cacheTreshold'],
  [{ cacheAware: { cacheThreshold: 1.5 } }, 'plugins.policies.cacheAware.cacheThreshold'],
  [{ prefixHash: { loadFactor: 0.5 } }, 'plugins.policies.prefixHash.loadFactor'],
  [{ manual: { assignmentMode: 'least' } }, 'plugins.policies.manual.assignmentMode'],
  [{ leastLoad: { defaultThroughput: 0 } }, 'plugins.policies.leastLoad.defaultThroughput'],
])('settings %j are refused by name', async (policies, field) => {
  await expect(openFleet({ plugins: { policies } })).rejects.toThrow(field)
})
