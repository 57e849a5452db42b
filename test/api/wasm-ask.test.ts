/** Questions of modules to models over real workers: permitted models, budgets, accounting, and no endless questions. */
import { expect, test } from 'vitest'
import { definePlugin, type TokenUsage, Type } from '#kernel'
import { jsonAnswer, type ScriptedWorker } from '../support/scripted-worker.ts'
import type { FleetOptions } from './fleet.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
/** The machine may be busy. */
const GENEROUS = { timeoutMs: 20_000 }
const ASK = { models: ['guard*'], timeoutMs: 20_000, maxTokens: 50 }
const QUESTION = { messages: [{ role: 'user', content: 'Is it safe?' }], max_tokens: 900 }

const completion = (content: string) =>
  jsonAnswer({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  })

interface Sent {
  readonly model: string
  readonly messages: unknown
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
}
const sentTo = (worker: ScriptedWorker) => worker.requestsTo(CHAT).map((request) => request.json() as Sent)

/** A gateway with a worker of the guard model and one of the requests. */
async function openAsking(
  wasm: Record<string, unknown> = {},
  plugins: Record<string, unknown> = {},
  own: FleetOptions['own'] = [],
) {
  const fleet = await openWasmFleet(
    { ...GENEROUS, ask: ASK, ...wasm },
    {
      own,
      workers: [{ models: ['test-model'] }, { models: ['guard-1'] }],
      plugins: { generations: {}, ...plugins },
    },
  )
  fleet.workers[1].script(CHAT, completion('yes, größe'))
  fleet.workers[0].script(CHAT, completion('hello'))
  return fleet
}

/** Settings of a guest that asks, and responds with what it gets. */
const asking = (question: unknown = QUESTION, more: Record<string, string> = {}) => ({
  do: 'fetch',
  head: JSON.stringify({ action: 'fetch', url: 'model:guard-1', method: 'POST', ...more }),
  body: JSON.stringify(question),
})

async function fetchedBy(fleet: WasmFleet) {
  const text = await (await fleet.chat()).text()
  return text.slice(text.indexOf('"fetched":'))
}

test.each(['pool', 'inline'] as const)('a module asks a model and gets its text (%s)', async (placement) => {
  const fleet = await openAsking()
  await fleet.attach('asker', 'OnRequest', asking(), { placement })
  const shown = await fetchedBy(fleet)
  expect(shown).toContain('"error":null,"status":200')
  expect(shown).toMatch(/yes, größe$/)
  const [sent] = sentTo(fleet.workers[1])
  expect([sent.model, sent.messages]).toEqual(['guard-1', QUESTION.messages])
  // The operator's limit.
  expect(sent.max_tokens ?? sent.max_completion_tokens).toBe(50)
  expect(sentTo(fleet.workers[0])).toEqual([])
  const metrics = await fleet.metrics()
  expect(metrics.get('weir_wasm_fetches_total{module="asker",outcome="answered"}')).toBe(1)
  expect(
    metrics.get('weir_router_tokens_total{model="guard-1",token_type="output"}') ?? tokensIn(metrics),
  ).toBe(3)
})

/** Output tokens of the guard model, whatever other labels there are. */
function tokensIn(metrics: Map<string, number>): number {
  const names = [...metrics.keys()].filter((name) => /^weir_router_tokens_total.*guard-1.*output/.test(name))
  return names.reduce((sum, name) => sum + (metrics.get(name) ?? 0), 0)
}

test.each([
  ['a model that is not listed', { url: 'model:test-model' }, QUESTION, 'not_allowed'],
  ['an unknown member', {}, { ...QUESTION, tools: [] }, 'invalid'],
  ['no messages', {}, { messages: [] }, 'invalid'],
])('%s is an error of the question: %s', async (_, more, question, error) => {
  const fleet = await openAsking()
  await fleet.attach('asker', 'OnRequest', asking(question, more))
  expect(await fetchedBy(fleet)).toContain(`"error":"${error}"`)
  expect(fleet.workers.flatMap(sentTo)).toEqual([])
})

test('a question ends at its time limit; errors of the gateway have their status', async () => {
  const slow = await openAsking({ ask: { ...ASK, timeoutMs: 100 } })
  slow.workers[1].script(CHAT, () => new Promise(() => {}))
  await slow.attach('asker', 'OnRequest', asking())
  expect(await fetchedBy(slow)).toContain('"error":"timeout"')
  const fleet = await openAsking()
  await fleet.attach('asker', 'OnRequest', asking(QUESTION, { url: 'model:guard-2' }))
  expect(await fetchedBy(fleet)).toContain('"error":null,"status":404')
})

test('the prompt of a question passes through the modules once, without questions of its own', async () => {
  const fleet = await openAsking()
  await fleet.attach('asker', 'OnPromptText', { ...asking(), after: 'continue' })
  const response = await fleet.chat({ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })
  expect(response.status).toBe(200)
  expect(sentTo(fleet.workers[1])).toHaveLength(1)
  expect(sentTo(fleet.workers[0])).toHaveLength(1)
  const metrics = await fleet.metrics()
  expect(metrics.get('weir_wasm_fetches_total{module="asker",outcome="answered"}')).toBe(1)
  expect(metrics.get('weir_wasm_fetches_total{module="asker",outcome="not_allowed"}')).toBe(1)
})

test('a module recognises the prompt of its question', async () => {
  const fleet = await openAsking()
  const when = '"is_question":false'
  await fleet.attach('asker', 'OnPromptText', { ...asking(), after: 'continue', when })
  const response = await fleet.chat({ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })
  expect([response.status, sentTo(fleet.workers[1]).length]).toEqual([200, 1])
  const metrics = await fleet.metrics()
  expect(metrics.get('weir_wasm_fetches_total{module="asker",outcome="answered"}')).toBe(1)
  expect(metrics.get('weir_wasm_fetches_total{module="asker",outcome="not_allowed"}')).toBeUndefined()
})

test('a response waits for a question too', async () => {
  const fleet = await openAsking()
  await fleet.attach('asker', 'OnResponse', asking())
  const shown = await fetchedBy(fleet)
  expect(shown).toMatch(/"error":null,"status":200.*yes, größe$/s)
  expect(sentTo(fleet.workers[0])).toHaveLength(1)
})

test.each(['OnRequest', 'OnResponse', 'OnPromptText'] as const)(
  'the usage of a question at %s counts for the request',
  async (point) => {
    const seen: (TokenUsage | null)[] = []
    const observer = definePlugin({
      manifest: { name: 'usage-observer', version: '0.1.0', description: 'Test.', config: Type.Object({}) },
      register(host) {
        host.hook('onDone', (ctx) => void seen.push(ctx.usage), {
          scope: 'all',
          routes: ({ path }) => path === '/v1/chat/completions',
        })
      },
    })
    const fleet = await openAsking({}, { 'usage-observer': {} }, [observer])
    await fleet.attach('asker', point, { ...asking(), after: 'continue' })
    const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
    expect((await fleet.chat(body)).status).toBe(200)
    await expect.poll(() => seen).toHaveLength(1)
    // 7 and 3 of the answer, and of the question.
    expect(seen[0]).toMatchObject({ input: 14, output: 6 })
  },
)
