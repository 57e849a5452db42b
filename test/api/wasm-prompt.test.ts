/** Modules at OnPromptText: placements, chains, refusals, failures and what they see. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { BUILD_LIMIT_MS, builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { withSection } from '../fixtures/wasm/guest-build.ts'
import { tinyModule } from '../fixtures/wasm/tiny-module.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

/** Adds role and place to texts with a role, and refuses the text `refuse`. */
let echo: Uint8Array

beforeAll(async () => {
  echo = await builtModule('wasm-sdk/fixtures/echo')
}, BUILD_LIMIT_MS)

let copies = 0

async function attach(fleet: WasmFleet, bytes: Uint8Array, more: object = {}): Promise<void> {
  const name = `prompt-${copies++}`
  const { results } = await fleet.register({
    name,
    file_path: fleet.folder.write(`${name}.wasm`, withSection(bytes, name)),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnPromptText' }],
    ...more,
  })
  expect(results).toEqual([{ Success: expect.any(String) }])
}

const ask = (fleet: WasmFleet, content: string, more: object = {}) =>
  fleet.chat({ model: 'test-model', messages: [{ role: 'user', content }], any_member: 1.5, ...more })

const trapping = tinyModule({ exports: ['on_prompt_text'], code: [0x00] })

describe.each(['pool', 'inline', 'auto'] as const)('placement %s', (placement) => {
  test('modules change texts in order; the rest of the body stays', async () => {
    const fleet = await openWasmFleet()
    await attach(fleet, echo, { placement })
    await attach(fleet, echo, { placement })
    const place = 'user messages.0.content'
    for (let calls = 0; calls < 3; calls++) expect((await ask(fleet, 'Grüße')).status).toBe(200)
    for (const request of fleet.workers[0].requests)
      expect(request.json()).toEqual({
        model: 'test-model',
        messages: [{ role: 'user', content: `Grüße ${place} ${place}` }],
        any_member: 1.5,
      })
    expect((await fleet.list()).metrics.failed_executions).toBe(0)
  })

  test('texts that several modules replace, before and behind a fetch, all reach the worker', async () => {
    const service = createServer((_, response) => void response.end('fine'))
    onTestFinished(() => void service.close())
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
    const fleet = await openWasmFleet({ fetch: { origins: [origin], timeoutMs: 20_000 } })
    const replace = (name: string, texts: readonly (string | null)[]) => {
      const head = JSON.stringify({ action: 'modify', replaces_body: true })
      return fleet.attach(name, 'OnPromptText', { head, body: JSON.stringify(texts) }, { placement })
    }
    await replace('first', ['one', null, 'three'])
    await replace('second', [null, null, 'drei'])
    const head = JSON.stringify({ action: 'fetch', url: origin })
    const fetcher = { do: 'fetch', after: 'continue', head, when: '"text":"drei"' }
    await fleet.attach('fetcher', 'OnPromptText', fetcher, { placement, allowed_hosts: [origin] })
    await replace('last', ['eins', null, null])
    const messages = ['a', 'b', 'c'].map((content) => ({ role: 'user', content }))
    expect((await fleet.chat({ model: 'test-model', messages })).status).toBe(200)
    const [request] = fleet.workers[0].requests
    const sent = request.json() as { messages: { content: string }[] }
    expect(sent.messages.map(({ content }) => content)).toEqual(['eins', 'b', 'drei'])
    const metrics = await fleet.metrics()
    expect(metrics.get('weir_wasm_fetches_total{module="fetcher",outcome="answered"}')).toBe(1)
  })

  test('a refusal is an error of the route with the status and the words of the module; no worker is asked', async () => {
    const fleet = await openWasmFleet({}, { plugins: { messages: {} } })
    await attach(fleet, echo, { placement })
    const reply = await ask(fleet, 'refuse')
    expect([reply.status, await reply.json()]).toMatchObject([
      451,
      { error: { message: 'no messages.0.content', code: 'prompt_refused' } },
    ])
    const message = await fleet.post('/v1/messages', {
      model: 'test-model',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'refuse' }],
    })
    expect([message.status, await message.json()]).toMatchObject([
      451,
      { type: 'error', error: { message: 'no messages.0.content' } },
    ])
    expect(fleet.workers[0].requests).toEqual([])
  })

  test('after a failed call the prompt goes on with on_failure open, and is refused with closed', async () => {
    const fleet = await openWasmFleet()
    await attach(fleet, trapping, { placement, on_failure: 'open' })
    expect((await ask(fleet, 'a')).status).toBe(200)
    await attach(fleet, trapping, { placement, on_failure: 'closed' })
    const reply = await ask(fleet, 'a')
    expect([reply.status, await reply.json()]).toMatchObject([500, { error: { code: 'wasm_module_failed' } }])
    expect(fleet.workers[0].requests).toHaveLength(1)
  })
})

test('other routes and models keep their prompts', async () => {
  const fleet = await openWasmFleet()
  await attach(fleet, echo, { match: { routes: ['/v1/completions'] } })
  await attach(fleet, echo, { match: { models: ['other'] } })
  const body = { model: 'test-model', messages: [{ role: 'user', content: 'a' }] }
  await fleet.chat(body)
  expect(String(fleet.workers[0].requests[0].body)).toBe(JSON.stringify(body))
})

test('texts that are too large to be shown are refused, and reach no worker', async () => {
  const fleet = await openWasmFleet({ maxBodyBytes: 4_096 })
  await attach(fleet, echo)
  const reply = await ask(fleet, 'x '.repeat(4_096))
  expect([reply.status, await reply.json()]).toMatchObject([413, { error: { code: 'payload_too_large' } }])
  expect(fleet.workers[0].requests).toEqual([])
})
