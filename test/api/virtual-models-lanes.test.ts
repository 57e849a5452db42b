/** Virtual models on every lane: the lane of a request follows the worker of its target. */
import { expect, test } from 'vitest'
import { dropAnswer, jsonAnswer } from '../support/scripted-worker.ts'
import { openGrpcFleet } from './grpc-fleet.ts'
import { CHAT, MESSAGES, VENDOR } from './messages-fleet.ts'
import { chatAnswer, openResponses, type ResponseJson } from './responses/responses-fleet.ts'
import { check, connect } from './responses/socket-client.ts'

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'vendor' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 3 },
}
const ASSISTANT = {
  targets: [{ model: 'small', parameters: { temperature: 0.2 } }],
  fallbacks: [{ model: 'claude', parameters: { max_tokens: 7, temperature: null } }],
}

async function open() {
  const fleet = await openResponses(undefined, {
    workers: [{ models: ['small'] }, { models: ['claude'], ...VENDOR }],
    plugins: {
      messages: {},
      responses: { background: { pollMs: 50 } },
      'virtual-models': { models: { assistant: ASSISTANT } },
    },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1, maxAttempts: 2 } },
  })
  fleet.workers[0].script(CHAT, chatAnswer('chat'))
  fleet.workers[1].script(MESSAGES, jsonAnswer(MESSAGE))
  return {
    ...fleet,
    breakFirst: () => void fleet.workers[0].script(CHAT, dropAnswer('reset')),
    last: (worker: number) => fleet.workers[worker].requests.at(-1)?.json() as ResponseJson,
  }
}

const textOf = ({ output }: ResponseJson) => output[0].content[0].text

test('Responses, whole, over a WebSocket and in the background', async () => {
  const { create, breakFirst, gateway, fetchJson, last } = await open()
  const ask = { model: 'assistant', input: 'hi', temperature: 1, store: false }
  expect(textOf(await create(ask))).toBe('chat')
  expect(last(0)).toMatchObject({ model: 'small', temperature: 0.2 })
  breakFirst()
  const second = await create(ask)
  expect([textOf(second), second.model]).toEqual(['vendor', 'assistant'])
  expect(last(1)).toMatchObject({ model: 'claude', max_tokens: 7 })
  expect(last(1)).not.toHaveProperty('temperature')
  const { turn } = await connect(gateway.url, 'assistant')
  expect(check(await turn({ input: 'hi', stream: false })).text).toBe('vendor')
  const { id } = await create({ model: 'assistant', input: 'hi', background: true })
  await expect
    .poll(async () => await fetchJson('GET', `/v1/responses/${id}`))
    .toMatchObject({ status: 'completed' })
})

test('Messages: translated for the target, relayed to the fallback with its parameters', async () => {
  const { post, breakFirst, last } = await open()
  const ask = {
    model: 'assistant',
    max_tokens: 64,
    temperature: 1,
    messages: [{ role: 'user', content: 'hi' }],
  }
  const first = await post('/v1/messages', ask)
  expect([first.headers.get('x-weir-model'), first.status]).toEqual(['small', 200])
  expect(await first.json()).toMatchObject({ model: 'assistant', content: [{ text: 'chat' }] })
  expect(last(0)).toMatchObject({ model: 'small', temperature: 0.2, max_tokens: 64 })
  breakFirst()
  const second = await post('/v1/messages', ask)
  expect(second.headers.get('x-weir-model')).toBe('claude')
  expect(await second.json()).toEqual(MESSAGE)
  expect(last(1)).toEqual({ ...ask, model: 'claude', max_tokens: 7, temperature: undefined })
})

test('chat: relayed with the parameters of the target', async () => {
  const { post, last } = await open()
  const ask = { model: 'assistant', temperature: 1, messages: [{ role: 'user', content: 'hi' }] }
  expect((await post('/v1/chat/completions', ask)).status).toBe(200)
  expect(last(0)).toEqual({ ...ask, model: 'small', temperature: 0.2 })
})

test('an engine over gRPC gets the prompt of its own model', async () => {
  const { engine, post, ids } = await openGrpcFleet({
    plugins: {
      'virtual-models': {
        models: {
          assistant: {
            targets: [{ model: 'missing' }],
            fallbacks: [{ model: 'test-model', parameters: { max_tokens: 3 } }],
          },
        },
      },
    },
  })
  const tokens = await ids('Hello there')
  engine.answer(tokens.map((id) => [id]))
  const answer = await post('/v1/chat/completions', {
    model: 'assistant',
    messages: [{ role: 'user', content: 'hi' }],
  })
  expect([answer.status, answer.headers.get('x-weir-model')]).toEqual([200, 'test-model'])
  expect(await answer.json()).toMatchObject({ model: 'test-model' })
  // The tokenizer is that of the first target, which no worker has.
  const counted = await post('/v1/tokenize', { model: 'assistant', prompt: 'x' })
  expect(counted.status).toBe(400)
  expect(await counted.text()).toContain('assistant')
})
