/** Prices by kind of token and service tier, over each API, whole and streamed, relayed and translated. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { jsonAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { type Fleet, openFleet } from './fleet.ts'
import { CHAT, MESSAGES, VENDOR } from './messages-fleet.ts'

const ADMIN = { authorization: 'Bearer admin-key' }
const PRICES = [
  {
    model: '*',
    input: 5,
    cachedInput: 0.5,
    cacheWrite: 6.25,
    output: 25,
    kinds: { cache_write_1h: 10, input_audio: 40, output_audio: 80 },
    tiers: { priority: { input: 10, output: 50 } },
  },
]

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-usage-prices-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const open = (spec: object) =>
  openFleet({
    workers: [spec as { readonly spec: Record<string, unknown> }],
    plugins: {
      auth: { apiKey: 'admin-key' },
      messages: {},
      responses: {},
      storage: { dir: join(dir, 'data') },
      usage: { prices: PRICES },
    },
  })

async function total(fleet: Fleet): Promise<object> {
  return ((await (await fleet.get('/usage', ADMIN)).json()) as { total: object }).total
}

const MESSAGE_USAGE = {
  input_tokens: 100,
  cache_read_input_tokens: 1_000,
  cache_creation_input_tokens: 5_000,
  cache_creation: { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 2_000 },
  output_tokens: 1,
  service_tier: 'standard',
}
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'test-model',
  content: [{ type: 'text', text: 'ok' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { ...MESSAGE_USAGE, output_tokens: 10 },
}
const MESSAGE_EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null, usage: MESSAGE_USAGE } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
  { type: 'content_block_stop', index: 0 },
  // The counts by time to live are at the start only.
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: {
      input_tokens: 100,
      cache_read_input_tokens: 1_000,
      cache_creation_input_tokens: 5_000,
      output_tokens: 10,
    },
  },
  { type: 'message_stop' },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const bodyOf = (path: string, stream: boolean) => ({
  model: 'test-model',
  stream,
  ...(path.endsWith('responses')
    ? { input: 'hi' }
    : { max_tokens: 99, messages: [{ role: 'user', content: 'hi' }] }),
})

test.each(
  ['/v1/messages', '/v1/chat/completions', '/v1/responses'].flatMap((path) => [
    [path, false] as const,
    [path, true] as const,
  ]),
)(
  'tokens written to the cache of a Messages worker have the price of their time to live: %s, streamed %s',
  async (path, stream) => {
    const fleet = await open(VENDOR)
    fleet.workers[0].script(MESSAGES, (request) =>
      (request.json() as { stream?: boolean }).stream === true
        ? streamAnswer(MESSAGE_EVENTS, { headers: { 'content-type': 'text/event-stream' } })
        : jsonAnswer(MESSAGE),
    )
    await textUntilCut(await fleet.post(path, bodyOf(path, stream), ADMIN))
    expect(await total(fleet)).toEqual({
      requests: 1,
      input_tokens: 6_100,
      cached_tokens: 1_000,
      output_tokens: 10,
      reasoning_tokens: 0,
      kinds: { cache_write: 5_000, cache_write_5m: 3_000, cache_write_1h: 2_000, tier_standard: 6_110 },
      cost: (100 * 5 + 1_000 * 0.5 + 3_000 * 6.25 + 2_000 * 10 + 10 * 25) / 1e6,
    })
  },
)

const CHAT_USAGE = {
  prompt_tokens: 1_000,
  completion_tokens: 100,
  total_tokens: 1_100,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 60, accepted_prediction_tokens: 7 },
}

test.each(
  ['/v1/messages', '/v1/chat/completions', '/v1/responses'].flatMap((path) =>
    ['default', 'priority'].flatMap((tier) => [[path, tier, false] as const, [path, tier, true] as const]),
  ),
)(
  'audio and service tiers of a chat worker have their prices: %s, %s, streamed %s',
  async (path, tier, stream) => {
    const fleet = await open({})
    const head = { id: 'c1', created: 1, model: 'test-model', service_tier: tier }
    fleet.workers[0].script(CHAT, (request) => {
      if ((request.json() as { stream?: boolean }).stream !== true)
        return jsonAnswer({
          ...head,
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
          metadata: { service_tier: 'free' },
          usage: CHAT_USAGE,
        })
      const chunk = { ...head, object: 'chat.completion.chunk' }
      return sseAnswer([
        JSON.stringify({
          ...chunk,
          choices: [{ index: 0, delta: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
        }),
        JSON.stringify({ ...chunk, choices: [], usage: CHAT_USAGE }),
        '[DONE]',
      ])
    })
    await textUntilCut(await fleet.post(path, bodyOf(path, stream), ADMIN))
    expect(await total(fleet)).toMatchObject({
      input_tokens: 1_000,
      output_tokens: 100,
      kinds: { input_audio: 400, output_audio: 60, [`tier_${tier}`]: 1_100 },
      cost: (tier === 'priority' ? 1_000 * 10 + 100 * 50 : 600 * 5 + 400 * 40 + 40 * 25 + 60 * 80) / 1e6,
    })
  },
)
