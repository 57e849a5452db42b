/** Cloud services without a key: their models are discovered with the key of the first client that needs them. */
import { expect, test } from 'vitest'
import { hangAnswer, jsonAnswer, type RecordedRequest, rawAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = '/v1/chat/completions'
const LIST = 'GET /v1/models'
const CLOUD = { spec: { runtime_type: 'external', models: undefined } }

const list = (...ids: string[]) =>
  jsonAnswer({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) })

async function openClouds(workers: Record<string, unknown> = {}, auth: object = {}): Promise<Fleet> {
  const fleet = await openFleet({
    workers: [CLOUD, CLOUD],
    plugins: { auth },
    kernel: { policy: 'round_robin' },
    workersSection: { callerKeyHosts: ['127.0.0.1'], ...workers },
  })
  fleet.workers[0].script(LIST, list('gpt-9', 'gpt-9-2026-01-01'))
  fleet.workers[1].script(LIST, list('claude-9'))
  return fleet
}

const chat = (fleet: Fleet, model: string, key: string | null = 'theirs') =>
  fleet.post(
    CHAT,
    { model, messages: [{ role: 'user', content: 'hi' }] },
    key === null ? {} : { authorization: `Bearer ${key}` },
  )
const discoveries = (fleet: Fleet) => fleet.workers.map((worker) => worker.requestsTo(LIST).length)
const served = (fleet: Fleet) => fleet.workers.map((worker) => worker.requestsTo(`POST ${CHAT}`).length)

test('services are queried once a request names a model; each request, including the first, goes to the service that lists it', async () => {
  const fleet = await openClouds()
  expect(discoveries(fleet)).toEqual([0, 0])
  for (let count = 0; count < 4; count++) expect((await chat(fleet, 'claude-9')).status).toBe(200)
  expect(served(fleet)).toEqual([0, 4])
  expect((await chat(fleet, 'gpt-9-2026-01-01')).status).toBe(200)
  expect(served(fleet)).toEqual([1, 4])
  expect(discoveries(fleet)).toEqual([1, 1])
  const keys = fleet.workers.flatMap((worker) => worker.requestsTo(LIST).map(ofKey))
  expect(keys).toEqual(['Bearer theirs', 'Bearer theirs'])
})

const ofKey = (request: RecordedRequest) => request.header('authorization')

test('models may differ by key; concurrent requests share one query', async () => {
  const fleet = await openClouds()
  const replies = await Promise.all(Array.from({ length: 20 }, () => chat(fleet, 'gpt-9')))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
  expect(discoveries(fleet)).toEqual([1, 1])
  fleet.workers[1].script(LIST, list('claude-9', 'secret-model'))
  expect((await chat(fleet, 'secret-model')).status).toBe(404)
  expect((await chat(fleet, 'secret-model', 'richer')).status).toBe(200)
  expect((await chat(fleet, 'secret-model')).status).toBe(200)
  expect((await chat(fleet, 'claude-9')).status).toBe(200)
  expect(discoveries(fleet)).toEqual([2, 2])
})

test.each([
  ['a refusal', rawAnswer('', { status: 401 })],
  ['no list', jsonAnswer({ data: 'none' })],
  ['an empty list', list()],
])('%s leaves a service what it was: it may serve any model', async (_what, answer) => {
  const fleet = await openClouds()
  for (const worker of fleet.workers) worker.script(LIST, answer)
  expect((await chat(fleet, 'anything')).status).toBe(200)
  expect((await chat(fleet, 'anything')).status).toBe(200)
  expect(served(fleet)).toEqual([1, 1])
  expect(discoveries(fleet)[0]).toBeLessThanOrEqual(2)
})

test('a service that never responds delays one request for five seconds, once', {
  timeout: 180_000,
}, async () => {
  const fleet = await openClouds()
  for (const worker of fleet.workers) worker.script(LIST, hangAnswer())
  expect((await chat(fleet, 'anything')).status).toBe(200)
  const before = discoveries(fleet)
  expect((await chat(fleet, 'anything')).status).toBe(200)
  expect(discoveries(fleet)).toEqual(before)
})

test('keys of the gateway, and keys for unlisted hosts, are never sent for discovery', async () => {
  const own = await openClouds({}, { apiKey: 'shared' })
  expect((await chat(own, 'claude-9', 'shared')).status).toBe(200)
  expect(discoveries(own)).toEqual([0, 0])
  const unlisted = await openClouds({ callerKeyHosts: [] })
  await chat(unlisted, 'claude-9')
  await chat(unlisted, 'claude-9', null)
  expect(discoveries(unlisted)).toEqual([0, 0])
})
