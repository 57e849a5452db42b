/** Virtual models of the real command: the share of a canary, and targets whose workers die under load. */
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  startBuiltGateway,
  startSim,
  stopCommands,
  sumOf,
  until,
} from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const vendors: ScriptedWorker[] = []

afterEach(async () => {
  await stopCommands()
  for (const vendor of vendors.splice(0)) await vendor.close()
})

/** A service with the Messages format and a model of its own. */
async function startVendor() {
  const vendor = await startScriptedWorker({ models: ['claude'] })
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', stop_sequence: null }
  const answer = { content: [{ type: 'text', text: 'hi' }], stop_reason: 'end_turn' }
  const usage = { input_tokens: 5, output_tokens: 3 }
  vendor.script('POST /v1/messages', jsonAnswer({ ...message, ...answer, usage }))
  vendors.push(vendor)
  return {
    url: vendor.url,
    models: [{ id: 'claude' }],
    runtime_type: 'external',
    provider: 'anthropic',
    api_key: 'k',
  }
}

/** Status and served model of one request. */
async function ask(gateway: BuiltGateway, more: object = {}): Promise<string> {
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { model: 'assistant', messages, max_tokens: 4, ...more }
  const response = await gateway.send('POST', '/v1/chat/completions', body)
  await response.arrayBuffer()
  return `${response.status} ${response.headers.get('x-weir-model')}`
}

/** Runs clients until `isOver`; counts what they saw. */
async function load(gateway: BuiltGateway, seen: Map<string, number>, isOver: () => boolean): Promise<void> {
  const client = async () => {
    while (!isOver()) {
      const what = await ask(gateway).catch((error: Error) => `failed: ${String(error.cause)}`)
      seen.set(what, (seen.get(what) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 16 }, client))
}

const countOf = (seen: Map<string, number>) => [...seen.values()].reduce((sum, count) => sum + count, 0)

test('a canary of 10 % gets 10 % of the requests of two threads', async () => {
  const sims = [
    await startSim('--model', 'small', '--ttft-ms', '0'),
    await startSim('--model', 'next', '--ttft-ms', '0'),
  ]
  const targets = [
    { model: 'small', weight: 90 },
    { model: 'next', weight: 10 },
  ]
  const gateway = await startBuiltGateway({
    plugins: { 'virtual-models': { models: { assistant: { targets } } } },
    workers: sims.map(({ url }) => ({ url })),
  })
  const seen = new Map<string, number>()
  await load(gateway, seen, () => countOf(seen) >= 2_000)
  expect([...seen.keys()].sort()).toEqual(['200 next', '200 small'])
  // Four standard deviations of 2,000 draws: 2.7 %.
  const share = (seen.get('200 next') ?? 0) / countOf(seen)
  console.log(`canary: ${(share * 100).toFixed(1)} % of ${countOf(seen)} requests`)
  expect(share).toBeGreaterThan(0.073)
  expect(share).toBeLessThan(0.127)
})

test('when the workers of the target and of the first fallback are killed under load, no request fails', async () => {
  const small = [await startSim('--model', 'small'), await startSim('--model', 'small')]
  const big = await startSim('--model', 'big')
  const fallbacks = [{ model: 'big' }, { model: 'claude', provider: 'anthropic' }]
  const models = { assistant: { targets: [{ model: 'small' }], fallbacks } }
  const gateway = await startBuiltGateway({
    kernel: { retry: { initialBackoffMs: 5, maxBackoffMs: 20 } },
    plugins: { 'virtual-models': { models } },
    workers: [...[...small, big].map(({ url }) => ({ url })), await startVendor()],
  })
  const seen = new Map<string, number>()
  let isOver = false
  const running = load(gateway, seen, () => isOver)
  await until(() => (seen.get('200 small') ?? 0) > 200)
  for (const { command } of small) command.child.kill('SIGKILL')
  await until(() => (seen.get('200 big') ?? 0) > 200)
  big.command.child.kill('SIGKILL')
  await until(() => (seen.get('200 claude') ?? 0) > 200)
  isOver = true
  await running
  console.log(`served: ${JSON.stringify(Object.fromEntries(seen))}`)
  expect([...seen.keys()].sort()).toEqual(['200 big', '200 claude', '200 small'])
  expect(await ask(gateway, { stream: true })).toBe('200 claude')
  expect(sumOf(await gateway.metrics(), 'weir_virtual_model_fallbacks_total')).toBeGreaterThan(400)
})
