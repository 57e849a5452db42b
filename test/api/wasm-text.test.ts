/** Modules at OnText: placements, chains, failures and which routes they affect. */
import { beforeAll, describe, expect, test } from 'vitest'
import { BUILD_LIMIT_MS, builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { withSection } from '../fixtures/wasm/guest-build.ts'
import { tinyModule } from '../fixtures/wasm/tiny-module.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

let redactor: Uint8Array

beforeAll(async () => {
  redactor = await builtModule('examples/wasm-redact-stream')
}, BUILD_LIMIT_MS)

let copies = 0

/** Every call traps. */
const trapping = tinyModule({ exports: ['on_text'], code: [0x00] })

function redact(fleet: WasmFleet, secrets: string, more: object = {}): Promise<void> {
  return attach(fleet, redactor, { config: { secrets }, ...more })
}

async function attach(fleet: WasmFleet, bytes: Uint8Array, more: object): Promise<void> {
  const name = `text-${copies++}`
  const { results } = await fleet.register({
    name,
    file_path: fleet.folder.write(`${name}.wasm`, withSection(bytes, name)),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnText' }],
    ...more,
  })
  expect(results).toEqual([{ Success: expect.any(String) }])
}

async function said(fleet: WasmFleet, stream: boolean, more: object = {}): Promise<string> {
  const reply = await fleet.post('/v1/chat/completions', {
    model: 'test-model',
    messages: [{ role: 'user', content: 'hi' }],
    stream,
    ...more,
  })
  const text = await reply.text()
  if (!stream) return JSON.parse(text).choices[0].message.content
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '')
    .join('')
}

describe.each(['pool', 'inline', 'auto'])('placement %s', (placement) => {
  test('modules change text in order, streamed or not', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, chatAnswer('first abcdef then abXdef'))
    await redact(fleet, 'abcdef', { placement })
    // The second module sees what the first one wrote.
    await redact(fleet, 'redacted', { placement })
    for (const stream of [true, false, true])
      expect(await said(fleet, stream)).toBe('first [[redacted]] then abXdef')
    const { metrics } = await fleet.list()
    expect(metrics.failed_executions).toBe(0)
    expect(metrics.total_executions).toBeGreaterThan(6)
  })

  test('a failed call passes the text on with on_failure open, and ends the answer with closed', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, chatAnswer('nothing to hide'))
    await attach(fleet, trapping, { placement, on_failure: 'open' })
    for (const stream of [true, false]) expect(await said(fleet, stream)).toBe('nothing to hide')
    await attach(fleet, trapping, { placement, on_failure: 'closed' })
    const reply = await fleet.post('/v1/chat/completions', {
      model: 'test-model',
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(reply.status).toBe(500)
    expect(await reply.json()).toMatchObject({ error: { code: 'wasm_module_failed' } })
  })
})

test('routes that no text module matches are relayed byte for byte', async () => {
  const fleet = await openWasmFleet()
  await redact(fleet, 'a', { match: { routes: ['/v1/completions'] } })
  const body = { model: 'test-model', messages: [], any_member: 1 }
  await fleet.chat(body)
  expect(fleet.workers[0].requests[0].json()).toEqual(body)
})

test('instances of one module have word lists of their own for routes and tenants', async () => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(CHAT, chatAnswer('red green blue'))
  const file_path = fleet.folder.write('words.wasm', redactor)
  const instance = (name: string, secrets: string, more: object) => ({
    name,
    file_path,
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnText' }],
    config: { secrets },
    ...more,
  })
  const { results } = await fleet.register(
    instance('everywhere', 'green', {}),
    instance('chats', 'red', { match: { routes: ['/v1/chat/*'] }, priority: 1 }),
    instance('others', 'blue', { match: { tenants: ['auth:other'] } }),
  )
  expect(results).toEqual(Array(3).fill({ Success: expect.any(String) }))
  expect(await said(fleet, false)).toBe('[redacted] [redacted] blue')
  const { modules } = await fleet.list()
  expect(modules.map(({ module_meta }) => module_meta.name)).toEqual(['chats', 'everywhere', 'others'])
  expect(new Set(modules.map(({ module_meta }) => module_meta.sha256_hash)).size).toBe(1)
})

test('other requests of a matched route keep their text', async () => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(CHAT, chatAnswer('abc'))
  await redact(fleet, 'b', { match: { models: ['other-*'] } })
  expect(await said(fleet, false)).toBe('abc')
  expect((await fleet.list()).metrics.total_executions).toBe(0)
})

test('a native generation that names no model is edited too', async () => {
  const fleet = await openWasmFleet()
  const choice = { index: 0, text: 'abcdef', finish_reason: 'stop', logprobs: null }
  fleet.workers[0].script(
    'POST /v1/completions',
    jsonAnswer({ id: 'c', object: 'text_completion', created: 1, model: 'm', choices: [choice] }),
  )
  await redact(fleet, 'abc')
  const reply = await fleet.post('/generate', { text: 'hi' })
  expect(reply.status).toBe(200)
  expect(await reply.json()).toMatchObject([{ text: '[redacted]def' }])
})
