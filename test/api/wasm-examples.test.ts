/** The example modules, built from their sources, in a real gateway before a scripted worker. */

import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUILD_LIMIT_MS, builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { chatChunks } from '../support/engine-shape.ts'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const EXAMPLES = [
  'auth',
  'errors',
  'guard-model',
  'rate-limit',
  'redact-request',
  'redact-stream',
  'trace-headers',
] as const

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-examples-'))
  for (const example of EXAMPLES)
    await writeFile(join(folder, `${example}.wasm`), await builtModule(`examples/wasm-${example}`))
}, BUILD_LIMIT_MS)
afterAll(() => rm(folder, { recursive: true }))

async function attach(
  fleet: WasmFleet,
  example: (typeof EXAMPLES)[number],
  points: readonly string[],
  config: Record<string, string> = {},
): Promise<void> {
  const { results } = await fleet.register({
    name: example,
    file_path: join(folder, `${example}.wasm`),
    module_type: 'Middleware',
    attach_points: points.map((Middleware) => ({ Middleware })),
    config,
  })
  expect(results).toEqual([{ Success: expect.any(String) }])
}

test('wasm-auth accepts known keys only', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  const key_sha256 = createHash('sha256').update('open sesame').digest('hex')
  await attach(fleet, 'auth', ['OnRequest'], { key_sha256 })
  const refused = await fleet.chat(undefined, { 'x-api-key': 'open sesam' })
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  expect(await refused.json()).toMatchObject({ error: { code: 'unauthorized' } })
  expect(fleet.workers[0].requests).toEqual([])
  const passed = await fleet.chat(undefined, { 'x-api-key': 'open sesame', 'x-auth-subject': 'root' })
  expect(passed.status).toBe(200)
  expect(fleet.workers[0].requests[0].header('x-auth-subject')).toBeUndefined()
})

test('wasm-auth fails closed without a configuration', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  await attach(fleet, 'auth', ['OnRequest'])
  expect((await fleet.chat()).status).toBe(500)
  expect(fleet.workers[0].requests).toEqual([])
})

test('wasm-rate-limit counts all requests', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2, roots: [folder] })
  await attach(fleet, 'rate-limit', ['OnRequest'], { limit: '3', window_s: '86400' })
  const responses = await Promise.all(Array.from({ length: 5 }, () => fleet.chat()))
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429])
  const limited = responses.find(({ status }) => status === 429)
  expect(Number(limited?.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('wasm-trace-headers propagates the trace to the worker and back', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  await attach(fleet, 'trace-headers', ['OnRequest', 'OnResponse'])
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const response = await fleet.chat(undefined, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` })
  const [sent] = fleet.workers[0].requests
  expect(sent.header('traceparent')).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
  expect(sent.header('x-weir-route')).toBe('/v1/chat/completions')
  expect(response.headers.get('x-trace-id')).toBe(traceId)
})

test('wasm-redact-request changes the prompt that the worker receives', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  await attach(fleet, 'redact-request', ['OnPromptText'])
  const messages = [{ role: 'user', content: 'Grüße an zoë@mail.example, Karte 4111 1111 1111 1111 😀' }]
  expect((await fleet.chat({ model: 'test-model', messages })).status).toBe(200)
  const [{ body }] = fleet.workers[0].requests
  expect(JSON.parse(String(body))).toEqual({
    model: 'test-model',
    messages: [{ role: 'user', content: 'Grüße an [email], Karte [card] 😀' }],
  })
})

test('wasm-redact-stream removes a secret that spans three events', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  const chunks = chatChunks('m', ['the key is sk-', 'li', 've, and sk'])
  fleet.workers[0].script(CHAT, sseAnswer(chunks))
  await attach(fleet, 'redact-stream', ['OnText'], { secrets: 'sk-live' })
  const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
    body: { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'hi' }] },
  })
  await stream.done
  const texts = stream.events.flatMap(({ data }) =>
    data === '[DONE]' ? [] : [JSON.parse(data).choices[0].delta.content ?? ''],
  )
  expect(texts.filter((text) => text !== '')).toEqual(['the key is ', '[redacted], and ', 'sk'])
  expect(stream.events.at(-1)?.data).toBe('[DONE]')
})

test('wasm-errors hides engine details', async () => {
  const fleet = await openWasmFleet({ roots: [folder] })
  fleet.workers[0].script(CHAT, jsonAnswer({ detail: 'Traceback' }, { status: 500 }))
  await attach(fleet, 'errors', ['OnResponse', 'OnError'], {
    statuses: '500=503,502=503',
    message: 'Später 😀',
  })
  const response = await fleet.chat()
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await response.json()).toMatchObject({ error: { message: 'Später 😀', type: 'service_error' } })
})

test('wasm-guard-model rejects a prompt that the guard model finds unsafe', async () => {
  const fleet = await openWasmFleet(
    { roots: [folder], ask: { models: ['guard-1'] } },
    { workers: [{ models: ['test-model'] }, { models: ['guard-1'] }], plugins: { generations: {} } },
  )
  await attach(fleet, 'guard-model', ['OnRequest'], { model: 'guard-1' })
  const [message, answers] = [
    (content: string) => ({ message: { role: 'assistant', content } }),
    fleet.workers[1],
  ]
  answers.once(CHAT, jsonAnswer({ choices: [{ ...message('safe'), index: 0, finish_reason: 'stop' }] }))
  answers.once(CHAT, jsonAnswer({ choices: [{ ...message('unsafe\nS1'), index: 0, finish_reason: 'stop' }] }))
  const statuses = [(await fleet.chat()).status, (await fleet.chat()).status]
  expect(statuses).toEqual([200, 400])
  expect(fleet.workers[0].requestsTo(CHAT)).toHaveLength(1)
})
