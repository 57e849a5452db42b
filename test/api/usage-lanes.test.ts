/** The ledger against the own counts of a worker: each API, whole and streamed, relayed and translated, with retries. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { jsonAnswer, type RecordedRequest, sseAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const ADMIN = { authorization: 'Bearer admin-key' }
const dir = mkdtempSync(join(tmpdir(), 'weir-usage-lanes-'))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

interface Counts {
  requests: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
}

/** An engine that fails every third request before its first byte, and counts what it has answered. */
function countingEngine() {
  const counts: Counts = {
    requests: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
  }
  let arrived = 0
  const answer = (request: RecordedRequest) => {
    if (++arrived % 3 === 0) return jsonAnswer({ error: { message: 'busy' } }, { status: 503 })
    const [input, output, cached, reasoning] = [7 + arrived, 3 + (arrived % 5), arrived % 4, arrived % 2]
    counts.requests++
    counts.input_tokens += input
    counts.output_tokens += output
    counts.cached_tokens += cached
    counts.reasoning_tokens += reasoning
    const usage = {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }
    const body = request.json() as { stream?: boolean; stream_options?: { include_usage?: boolean } }
    const head = { id: `c${arrived}`, object: 'chat.completion', created: 1, model: 'test-model' }
    if (body.stream !== true) {
      const message = { role: 'assistant', content: 'hello' }
      return jsonAnswer({
        ...head,
        choices: [{ index: 0, message, text: 'hello', finish_reason: 'stop' }],
        usage,
      })
    }
    const chunk = (delta: object, reason: string | null) =>
      JSON.stringify({ ...head, choices: [{ index: 0, delta, text: 'x', finish_reason: reason }] })
    const isAsked = body.stream_options?.include_usage === true
    return sseAnswer([
      chunk({ role: 'assistant', content: 'hel' }, null),
      { waitMs: 1 },
      chunk({ content: 'lo' }, 'stop'),
      ...(isAsked ? [JSON.stringify({ ...head, choices: [], usage })] : []),
      '[DONE]',
    ])
  }
  return { counts, answer }
}

const user = [{ role: 'user', content: 'hi' }]
const REQUESTS: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { messages: user }],
  ['/v1/completions', { prompt: 'hi' }],
  ['/v1/responses', { input: 'hi' }],
  ['/v1/messages', { max_tokens: 9, messages: user }],
]

test.each([
  ['relayed', { chat: {}, usage: {} }],
  ['relayed, durable', { chat: {}, usage: { durable: true } }],
  ['translated', { chat: { chat: 'normalize' }, usage: {} }],
  ['translated, durable', { chat: { chat: 'normalize' }, usage: { durable: true } }],
])('%s: equal to the worker', async (name, plugins) => {
  const { counts, answer } = countingEngine()
  const fleet = await openFleet({
    kernel: {
      retry: { maxAttempts: 4, initialBackoffMs: 1, maxBackoffMs: 2 },
      breaker: { failureThreshold: 1_000 },
    },
    plugins: {
      auth: { apiKey: 'admin-key' },
      storage: { dir: join(dir, name) },
      history: {},
      responses: {},
      messages: {},
      ...plugins,
    },
    workers: [{}, {}],
  })
  for (const worker of fleet.workers)
    worker.script('POST /v1/chat/completions', answer).script('POST /v1/completions', answer)
  for (let round = 0; round < 5; round++)
    await Promise.all(
      REQUESTS.flatMap(([path, body]) =>
        [false, true].map(async (stream) => {
          const response = await fleet.post(path, { model: 'test-model', stream, ...body }, ADMIN)
          const text = await response.text()
          expect([path, response.status, text.includes('"error":{')]).toEqual([path, 200, false])
        }),
      ),
    )
  expect(counts.requests).toBe(40)
  const { total } = (await (await fleet.get('/usage', ADMIN)).json()) as { total: object }
  expect(total).toMatchObject(counts)
})
