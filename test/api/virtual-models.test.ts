/** Virtual models: which target gets a request, and which one follows when it fails. */
import { expect, test } from 'vitest'
import { dropAnswer, jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import type { FleetOptions } from './fleet.ts'
import { CHAT, MESSAGES, type MessagesFleet, openMessages, VENDOR } from './messages-fleet.ts'

const PATH = '/v1/chat/completions'
const HI = { model: 'assistant', messages: [{ role: 'user', content: 'Hi' }] }

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'from the vendor' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 3 },
}

type Models = Record<string, Record<string, unknown>>

/** Workers of `small`, `next` and `claude`; the last one is a vendor with the Messages format. */
async function open(models: Models, more: FleetOptions = {}): Promise<MessagesFleet> {
  const fleet = await openMessages({
    workers: [
      { models: ['small'] },
      { models: ['next'], spec: { labels: { pool: 'canary' } } },
      { models: ['claude'], ...VENDOR },
    ],
    ...more,
    plugins: { 'virtual-models': { models }, ...more.plugins },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1, maxAttempts: 2 }, ...more.kernel },
  })
  fleet.workers[2]?.script(MESSAGES, jsonAnswer(MESSAGE))
  return fleet
}

/** Texts and served models of answers. */
async function served(response: Response) {
  expect(response.status).toBe(200)
  const body = (await response.json()) as { model: string }
  return { header: response.headers.get('x-weir-model'), body: body.model }
}

test('a request goes to the target, whose worker and client see its model', async () => {
  const { post, workers } = await open({ assistant: { targets: [{ model: 'small' }] } })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'small', body: 'small' })
  expect(workers[0].requestsTo(CHAT)[0].json()).toEqual({ ...HI, model: 'small' })
  const direct = await post(PATH, { ...HI, model: 'small' })
  expect(direct.headers.get('x-weir-model')).toBeNull()
})

test.each([
  ['a broken connection', dropAnswer('reset')],
  ['a failure status', jsonAnswer({ error: { message: 'busy' } }, { status: 429 })],
  ['rejected credentials', jsonAnswer({ error: { message: 'key' } }, { status: 401 })],
])('after %s the fallback serves, whole and streamed', async (_, failure) => {
  const { post, workers } = await open(
    { assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] } },
    { workers: [{ models: ['small'], spec: { api_key: 'k' } }, { models: ['next'] }] },
  )
  workers[0].script(CHAT, failure)
  expect(await served(await post(PATH, HI))).toEqual({ header: 'next', body: 'next' })
  workers[1].script(
    CHAT,
    sseAnswer([
      'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ]),
  )
  const streamed = await post(PATH, { ...HI, stream: true })
  expect(streamed.headers.get('x-weir-model')).toBe('next')
  expect(await streamed.text()).toContain('[DONE]')
})

test('a fallback in the format of another vendor is translated', async () => {
  const { post, workers } = await open({
    assistant: {
      targets: [{ model: 'small' }],
      fallbacks: [{ model: 'claude', provider: 'anthropic' }],
    },
  })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'small', body: 'small' })
  expect(workers[0].requestsTo(CHAT)).toHaveLength(1)
  workers[0].script(CHAT, dropAnswer('reset'))
  const answer = await post(PATH, HI)
  expect(answer.headers.get('x-weir-model')).toBe('claude')
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'from the vendor' } }] })
  expect(workers[2].requestsTo(MESSAGES)[0].json()).toMatchObject({ model: 'claude' })
})

test('a target without a worker is given up at once', async () => {
  const { post } = await open({
    assistant: {
      targets: [{ model: 'missing' }],
      fallbacks: [
        { model: 'small', labels: { pool: 'canary' } },
        { model: 'next', labels: { pool: 'canary' } },
      ],
    },
  })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'next', body: 'next' })
})

test('an error of the client passes', async () => {
  const { post, workers } = await open({
    assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] },
  })
  workers[0].script(CHAT, jsonAnswer({ error: { message: 'bad temperature' } }, { status: 400 }))
  const answer = await post(PATH, HI)
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('bad temperature')
  expect(workers[1].requestsTo(CHAT)).toEqual([])
})
