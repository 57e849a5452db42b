/** Error codes chosen by workers, on every route that converts their responses: bounded, and valid in a header. */
import { expect, test } from 'vitest'
import { type Answer, jsonAnswer } from '../support/scripted-worker.ts'
import { CHAT, HELLO, MESSAGES, VENDOR } from './messages-fleet.ts'
import { openResponses, type ResponsesFleet } from './responses/responses-fleet.ts'
import { connect } from './responses/socket-client.ts'

const RESPONSES = 'POST /v1/responses'
const MODELS = ['of-chat', 'of-responses', 'of-messages']
const messages = [{ role: 'user', content: 'hi' }]
const input = [{ type: 'message', role: 'user', content: 'hi' }]

const ROUTES: readonly (readonly [path: string, body: object])[] = [
  ['/v1/responses', { input }],
  ['/v1/responses', { input, stream: true }],
  ['/v1/responses/compact', { input }],
  ['/v1/messages', { ...HELLO }],
  ['/v1/messages', { ...HELLO, stream: true }],
  ['/v1/chat/completions', { messages }],
  ['/v1/chat/completions', { messages, stream: true }],
]

/** Requests in the format of the worker, whose responses are passed on unchanged. */
const RELAYED = new Set(['/v1/messages of-messages', '/v1/chat/completions of-chat'])

/** Workers of each format that the gateway converts to. */
async function open(answer: Answer): Promise<ResponsesFleet> {
  const fleet = await openResponses(undefined, {
    workers: [
      { models: ['of-chat'] },
      { models: ['of-responses'], spec: { apis: ['responses'] } },
      { ...VENDOR, models: ['of-messages'] },
    ],
    plugins: { messages: {}, health: {} },
  })
  for (const worker of fleet.workers)
    for (const route of [CHAT, RESPONSES, MESSAGES]) worker.script(route, answer)
  return fleet
}

function refusal(code: string): Answer {
  return jsonAnswer({ error: { message: 'no', code } }, { status: 400 })
}

async function codesOf({ gateway }: ResponsesFleet): Promise<Record<string, unknown>> {
  const codes: Record<string, unknown> = {}
  for (const model of MODELS) {
    for (const [path, body] of ROUTES) {
      if (RELAYED.has(`${path} ${model}`)) continue
      const reply = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, model }),
        signal: AbortSignal.timeout(10_000),
      })
      const isStream = 'stream' in body
      const text = await reply.text()
      codes[`${path}${isStream ? ' stream' : ''} ${model}`] = [
        reply.status,
        reply.headers.get('x-weir-error-code'),
        text.includes('"message":"no"'),
      ]
    }
    const { turn } = await connect(gateway.url, model)
    const [event] = await turn({ input })
    codes[`socket ${model}`] = [event.status, event.error.code, event.error.message === 'no']
  }
  return codes
}

test.each([
  ['a control character', 'a\u0000b', 'worker_error'],
  ['a line break', 'a\r\nx-other: b', 'worker_error'],
  ['a space', 'not now', 'worker_error'],
  ['letters beyond ASCII', 'straße', 'worker_error'],
  ['101 characters', 'x'.repeat(101), 'worker_error'],
  ['what codes are made of', 'Model.Not-Found_1', 'Model.Not-Found_1'],
])(
  'a code with %s reaches clients as one that a header can hold',
  async (_what, code, shown) => {
    const fleet = await open(refusal(code))
    const codes = await codesOf(fleet)
    expect(Object.keys(codes)).toHaveLength(MODELS.length * (ROUTES.length + 1) - 4)
    expect(codes).toEqual(Object.fromEntries(Object.keys(codes).map((route) => [route, [400, shown, true]])))
    // An uncaught error would have started the shutdown.
    expect((await fetch(`${fleet.gateway.url}/readiness`)).status).toBe(200)
  },
  120_000,
)
