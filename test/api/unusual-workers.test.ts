/** Undocumented worker behaviour, over every client API. */
import { expect, test } from 'vitest'
import {
  type Answer,
  jsonAnswer,
  rawAnswer,
  type StreamStep,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { FRONTS, LANES, openLane, readStream } from './recorded-fleet.ts'
import type { Json, ResponseJson } from './responses/responses-fleet.ts'

type Lane = keyof typeof LANES
type Front = keyof typeof FRONTS

const lanes = Object.keys(LANES) as Lane[]
const fronts = Object.keys(FRONTS) as Front[]
const pairs = lanes.flatMap((lane) => fronts.map((front) => [lane, front] as const))

const EVENTS = { 'content-type': 'text/event-stream' }
const frame = (event: Json) => `event: ${event.type ?? 'message'}\ndata: ${JSON.stringify(event)}\n\n`
const framed = (lane: Lane) =>
  LANES[lane].events.map(frame).join('') + (lane === 'chat' ? 'data: [DONE]\n\n' : '')
const BOM = Buffer.from('\ufeff')

/** Allowed beginnings of an event stream. @source WHATWG HTML, Server-sent events */
const FRAMINGS: readonly (readonly [string, (text: string) => StreamStep[]])[] = [
  ['a byte order mark', (text) => [`\ufeff${text}`]],
  ['a split byte order mark', (text) => [BOM.subarray(0, 2), { waitMs: 20 }, BOM.subarray(2), text]],
  ['a comment first', (text) => [`: connected\n\n${text}`]],
  ['a byte order mark and a comment', (text) => [`\ufeff: connected\n${text}`]],
  ['empty lines and a retry time', (text) => [`\n\nretry: 10\n\n${text}`]],
  ['lines that end in CR LF', (text) => [text.replaceAll('\n', '\r\n')]],
  ['a split CR LF', (text) => [`${text.replaceAll('\n', '\r\n').slice(0, -1)}`, { waitMs: 20 }, '\n']],
  [
    'no space after the colons',
    (text) => [text.replaceAll('event: ', 'event:').replaceAll('data: ', 'data:')],
  ],
]

test.each(pairs)(
  '%s worker, %s client: the framing of the stream does not change the response',
  async (lane, front) => {
    const { gateway, post, workers } = await openLane(LANES[lane])
    const { path, body, ofStream } = FRONTS[front]
    const options = front === 'chat' && { stream_options: { include_usage: true } }
    const read = async () => ofStream(await readStream(gateway.url + path, { ...body, ...options }))
    const plain = await read()
    for (const [name, toSteps] of FRAMINGS) {
      const steps = toSteps(framed(lane))
      workers[0].script(LANES[lane].route, streamAnswer(steps, { headers: EVENTS }))
      if (lane !== front || lane === 'responses') expect(await read(), name).toEqual(plain)
      else {
        const reply = await post(path, { ...body, ...options, model: 'test-model', stream: true })
        const sent = steps.filter((step) => typeof step === 'string' || Buffer.isBuffer(step))
        const bytes = Buffer.concat(sent.map((step) => Buffer.from(step as string)))
        expect(Buffer.from(await reply.arrayBuffer()).equals(bytes), name).toBe(true)
      }
    }
  },
)

const ERROR_BODIES: readonly (readonly [number, string, Record<string, string>])[] = [
  [502, '<html><body>bad gateway ☃</body></html>', { 'content-type': 'text/html; charset=utf-8' }],
  [400, 'the request was bad', { 'content-type': 'text/plain' }],
  [429, 'slow down', { 'content-type': 'text/plain', 'retry-after': '7' }],
  [404, 'no such route', {}],
  [503, '', { 'content-type': 'text/html' }],
]

test.each(pairs)(
  '%s worker, %s client: an error body that is not JSON keeps its text and status',
  async (lane, front) => {
    const { post, workers } = await openLane(LANES[lane], { retry: { maxAttempts: 1 } })
    const { path, body } = FRONTS[front]
    for (const [status, text, headers] of ERROR_BODIES)
      for (const stream of [true, false]) {
        workers[0].script(LANES[lane].route, rawAnswer(text, { status, headers }))
        const reply = await post(path, { ...body, model: 'test-model', stream })
        const said = (await reply.json()) as ResponseJson
        expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
        expect(said.error.message).toContain(text === '' ? 'status 503' : text.replace(/<[^>]*>/g, ''))
        expect(said.error.type).toEqual(expect.any(String))
        if (front === 'messages')
          expect(said).toMatchObject({ type: 'error', request_id: expect.any(String) })
        // A Responses client gets the status codes of that API.
        if (front !== 'responses') expect(reply.status).toBe(status)
        if (status === 429) expect(reply.headers.get('retry-after')).toBe('7')
      }
  },
)

test('a JSON error body without a JSON content type is relayed unchanged', async () => {
  const { post, workers } = await openLane(LANES.chat)
  const text = ' {"error":{"message":"m","odd":1.0}}'
  workers[0].script(
    LANES.chat.route,
    rawAnswer(text, { status: 400, headers: { 'content-type': 'text/plain' } }),
  )
  const reply = await post(FRONTS.chat.path, { ...FRONTS.chat.body, model: 'test-model' })
  expect([reply.status, await reply.text()]).toEqual([400, text])
})

test.each([
  [
    { object: 'error', message: 'too long', type: 'BadRequestError', param: null, code: 400 },
    'too long',
    '400',
  ],
  [{ error: { message: 'too long', type: 'exceed', code: 400 } }, 'too long', '400'],
  [{ detail: 'no model' }, 'no model', 'worker_refused'],
  [{ detail: [{ loc: ['body', 'n'], msg: 'must be 1', type: 'x' }] }, 'n: must be 1', 'worker_refused'],
])(
  'an error body %j that strict clients cannot read becomes an error object',
  async (body, message, code) => {
    const { post, workers } = await openLane(LANES.chat)
    for (const route of ['POST /v1/chat/completions', 'POST /v1/completions'])
      workers[0].script(route, jsonAnswer(body, { status: 400 }))
    for (const path of ['/v1/chat/completions', '/v1/completions']) {
      const reply = await post(path, { ...FRONTS.chat.body, prompt: 'hi', model: 'test-model' })
      const { error } = (await reply.json()) as ResponseJson
      expect([reply.status, error.message, error.code, typeof error.type]).toEqual([
        400,
        message,
        code,
        'string',
      ])
    }
  },
)

test('an endless error page is truncated', async () => {
  const { post, workers } = await openLane(LANES.chat)
  const page = [...Array.from({ length: 20 }, () => 'x'.repeat(10_000)), { hang: true }] as StreamStep[]
  workers[0].script(
    LANES.chat.route,
    streamAnswer(page, { status: 400, headers: { 'content-type': 'text/html' } }),
  )
  const reply = await post(FRONTS.chat.path, { ...FRONTS.chat.body, model: 'test-model' })
  const { error } = (await reply.json()) as ResponseJson
  expect([reply.status, error.message]).toEqual([400, `${'x'.repeat(1_000)}…`])
})

test.each(['messages', 'responses'] as const)(
  'a choice that was not requested does not reach a %s client',
  async (front) => {
    const { gateway, post, workers } = await openLane(LANES.chat)
    const { path, body, ofStream, ofResponse } = FRONTS[front]
    const extra = (choice: ResponseJson) => ({ ...choice, index: 1 })
    const events = LANES.chat.events.map((event: ResponseJson) => ({
      ...event,
      choices: event.choices.flatMap((choice: ResponseJson) => [extra(choice), choice]),
    }))
    const whole = LANES.chat.reply as ResponseJson
    const plain = ofStream(await readStream(gateway.url + path, body))
    const answer: Answer = streamAnswer([...events.map(frame), 'data: [DONE]\n\n'], { headers: EVENTS })
    workers[0].script(LANES.chat.route, answer)
    expect(ofStream(await readStream(gateway.url + path, body))).toEqual(plain)
    workers[0].script(
      LANES.chat.route,
      jsonAnswer({ ...whole, choices: [whole.choices[0], extra(whole.choices[0])] }),
    )
    const reply = await post(path, { ...body, model: 'test-model' })
    expect(ofResponse(await reply.json())).toEqual(plain)
    // The extra choice has no finish_reason, which is no error.
    const open = { ...events[1], choices: [extra(events[1].choices[0])] }
    workers[0].script(
      LANES.chat.route,
      streamAnswer([open, ...LANES.chat.events].map(frame), { headers: EVENTS }),
    )
    expect(ofStream(await readStream(gateway.url + path, body))).toEqual(plain)
  },
)

/** Errors inside a stream, as engines and cloud services send them. */
const STREAM_ERRORS: Readonly<Record<Lane, readonly string[]>> = {
  chat: [
    'data: {"error":{"message":"it broke ☃","type":"server_error","code":500}}\n\n',
    'data: {"error":{"message":"it broke ☃"}}\n\ndata: [DONE]\n\n',
    'data: {"error":"it broke ☃"}\n\n',
    'data: {"object":"error","message":"it broke ☃","type":"InternalServerError","code":500}\n\n',
    'event: error\ndata: {"message":"it broke ☃"}\n\n',
    'event: error\ndata: {"detail":"it broke ☃"}\n\n',
    'event: error\ndata: it broke ☃\n\n',
  ],
  responses: [
    'data: {"type":"error","code":"server_error","message":"it broke ☃","param":null}\n\n',
    'data: {"type":"error","error":{"type":"server_error","message":"it broke ☃"}}\n\n',
    'data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"it broke ☃"}}}\n\n',
    'data: {"type":"response.failed","response":{"status":"failed"},"error":{"message":"it broke ☃"}}\n\n',
    'data: {"error":{"message":"it broke ☃","type":"server_error"}}\n\n',
    'event: error\ndata: {"message":"it broke ☃"}\n\n',
    'data: {"type":"error","error":"it broke ☃"}\n\n',
  ],
  messages: [
    'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"it broke ☃"}}\n\n',
    'data: {"type":"error","error":{"type":"never_heard_of","message":"it broke ☃"}}\n\n',
    'event: error\ndata: {"error":{"message":"it broke ☃"}}\n\n',
    'event: error\ndata: {"type":"error","message":"it broke ☃"}\n\n',
  ],
}

test.each(pairs)(
  '%s worker, %s client: an error inside the stream keeps its message',
  async (lane, front) => {
    const { gateway, workers } = await openLane(LANES[lane], { retry: { maxAttempts: 1 } })
    const { path, body } = FRONTS[front]
    const firstEvents = LANES[lane].events.slice(0, 3).map(frame)
    for (const error of STREAM_ERRORS[lane])
      for (const before of [[], firstEvents]) {
        workers[0].script(LANES[lane].route, streamAnswer([...before, error], { headers: EVENTS }))
        const stream = openSse(gateway.url + path, { body: { ...body, model: 'test-model', stream: true } })
        await stream.done
        expect(stream.text(), error).toContain('it broke ☃')
        // Clients of chats may take an orderly end for the end of a complete answer.
        expect(stream.isWhole, error).toBe(front !== 'chat' || stream.status !== 200)
        if (front === 'chat') expectReadable(stream.text())
      }
  },
)

/** Strict clients read an error of the last event, or of the body, only if its members are texts. */
function expectReadable(text: string): void {
  const last = text.slice(text.lastIndexOf('{"error"')).split('\n')[0]
  const { message, type, code } = (JSON.parse(last) as ResponseJson).error
  expect([typeof message, typeof (type ?? ''), typeof (code ?? '')], last).toEqual(Array(3).fill('string'))
}

test.each(
  (['abort', 'error'] as const).flatMap((reason) => [
    [reason, 'chat/completions', { delta: { content: 'half' } }],
    [reason, 'completions', { text: 'half' }],
  ]),
)('an answer that the worker ends with %s on %s is an error', async (reason, path, content) => {
  const { gateway, post, workers } = await openLane(LANES.chat, { retry: { maxAttempts: 1 } })
  const route = `POST /v1/${path}`
  const request = { ...FRONTS.chat.body, prompt: 'hi', model: 'test-model' }
  const chunk = (choice: Json) => frame({ id: 'c', choices: [{ index: 0, ...choice }] })
  const first = chunk({ ...content, finish_reason: null })
  const last = chunk({ ...content, finish_reason: reason })
  for (const steps of [
    [first, last, 'data: [DONE]\n\n'],
    [first + last],
    [first, last.slice(0, -20), { waitMs: 20 }, last.slice(-20)],
  ] as StreamStep[][]) {
    workers[0].script(route, streamAnswer(steps, { headers: EVENTS }))
    const stream = openSse(`${gateway.url}/v1/${path}`, { body: { ...request, stream: true } })
    await stream.done
    expect(stream.text()).toContain('half')
    expect(stream.text()).toMatch(/"code":"worker_aborted"\}\}\n\n$/)
    expect(stream.text()).not.toContain(`:"${reason}"`)
    expect(stream.isWhole).toBe(false)
  }
  workers[0].script(
    route,
    jsonAnswer({ id: 'c', choices: [{ index: 0, message: { content: 'half' }, finish_reason: reason }] }),
  )
  const reply = await post(`/v1/${path}`, request)
  expect([reply.status, await reply.json()]).toMatchObject([502, { error: { code: 'worker_aborted' } }])
})

test('a finish reason that no client knows is passed on by workers of the same format', async () => {
  const { post, workers } = await openLane(LANES.chat)
  const answer = { id: 'c', choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'eos' }] }
  workers[0].script(LANES.chat.route, jsonAnswer(answer))
  expect(await (await post(FRONTS.chat.path, { ...FRONTS.chat.body, model: 'test-model' })).json()).toEqual(
    answer,
  )
})

/** Errors of engines for a prompt that leaves too little room for max_tokens. */
const OVERFLOWS = [
  "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 28000 input tokens (32000 > 32768 - 28000).",
  "This model's maximum context length is 32768 tokens. However, you requested 60000 tokens (28000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.",
  "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 60000 tokens: 28000 tokens from the input messages and 32000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
]

test.each(fronts)(
  'a context overflow is reported in the wording of the API of a %s client',
  async (front) => {
    const { post, workers } = await openLane(LANES.chat)
    const { path, body } = FRONTS[front]
    for (const message of OVERFLOWS)
      for (const stream of [true, false]) {
        const error = { message, type: 'BadRequestError', code: 400 }
        workers[0].script(LANES.chat.route, jsonAnswer({ error }, { status: 400 }))
        const reply = await post(path, { ...body, model: 'test-model', stream })
        const said = (await reply.json()) as ResponseJson
        expect(reply.status).toBe(400)
        // Agents parse the numbers and retry with a smaller max_tokens.
        if (front === 'messages')
          expect(said.error).toMatchObject({
            type: 'invalid_request_error',
            message: expect.stringContaining(
              'input length and `max_tokens` exceed context limit: 28000 + 32000 > 32768',
            ),
          })
        else expect(said.error.message).toBe(message)
        if (front === 'responses') expect(said.error.code).toBe('context_length_exceeded')
      }
  },
)
