/** Virtual models with fallbackOn: a prompt that is too long for a target goes to the next one. */
import { expect, test } from 'vitest'
import { dropAnswer, jsonAnswer, type Script, streamAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'
import { openGrpcFleet } from './grpc-fleet.ts'
import { CHAT, HELLO, MESSAGES, VENDOR } from './messages-fleet.ts'
import { chatAnswer, openResponses, RESPONSES } from './responses/responses-fleet.ts'

const HI = { model: 'assistant', messages: [{ role: 'user', content: 'Hi' }] }
const refusal = (body: object | string): Script => jsonAnswer(body, { status: 400 })
const VLLM =
  "This model's maximum context length is 2048 tokens. However, your request has 8000 input tokens. Please reduce the length of the input messages."

/** As the engines and vendors send them with status 400. */
const OVERFLOWS: Record<string, object> = {
  OpenAI: {
    error: { message: 'Reduce it.', type: 'invalid_request_error', code: 'context_length_exceeded' },
  },
  'OpenAI, Responses': {
    error: { message: 'Your input exceeds the context window of this model.', code: null },
  },
  vLLM: { error: { message: VLLM, type: 'BadRequestError', param: 'input_tokens', code: 400 } },
  'vLLM, prompt': {
    error: {
      message: 'The decoder prompt (length 8000) is longer than the maximum model length of 2048.',
      code: 400,
    },
  },
  SGLang: {
    object: 'error',
    message: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    code: 400,
  },
  'SGLang, total': {
    object: 'error',
    message: "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    code: 400,
  },
  'llama.cpp': { error: { message: 'too large', type: 'exceed_context_size_error', code: 400 } },
  Anthropic: {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  },
  Gemini: {
    error: {
      message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
      code: 400,
    },
  },
}

const ASSISTANT = {
  targets: [{ model: 'small' }],
  fallbacks: [{ model: 'next' }],
  fallbackOn: ['context_length'],
}

/** Workers of `small`, `next` and `claude`; the last one is a vendor with the Messages format. */
async function open(model: object = {}) {
  const fleet = await openResponses(undefined, {
    workers: [{ models: ['small'] }, { models: ['next'] }, { models: ['claude'], ...VENDOR }],
    plugins: {
      messages: {},
      'virtual-models': {
        models: {
          assistant: { ...ASSISTANT, ...model },
        },
      },
    },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1, maxAttempts: 2 } },
  })
  fleet.workers[0].script(CHAT, refusal(OVERFLOWS.vLLM))
  fleet.workers[1].script(CHAT, chatAnswer('long'))
  const send = async (path: string, body: object) => {
    const response = await fleet.post(path, body)
    return {
      status: response.status,
      model: response.headers.get('x-weir-model'),
      text: await response.text(),
    }
  }
  return { ...fleet, send, calls: () => fleet.workers.map(({ requests }) => requests.length) }
}

test.each([
  ['/v1/chat/completions', HI],
  ['/v1/chat/completions', { ...HI, stream: true }],
  [RESPONSES, { model: 'assistant', input: 'Hi' }],
  [RESPONSES, { model: 'assistant', input: 'Hi', stream: true }],
  ['/v1/messages', { ...HELLO, model: 'assistant' }],
  ['/v1/messages', { ...HELLO, model: 'assistant', stream: true }],
])('%s %j goes to the fallback after one attempt', async (path, body) => {
  const { send, calls, workers } = await open()
  expect(await send(path, body)).toMatchObject({
    status: 200,
    model: 'next',
    text: expect.stringContaining('long'),
  })
  expect(calls()).toEqual([1, 1, 0])
  expect(workers[1].requests[0].json()).toMatchObject({ model: 'next' })
})

test.each(Object.entries(OVERFLOWS))('the refusal of %s is known', async (_, body) => {
  const { send, workers } = await open()
  workers[0].script(CHAT, refusal(body))
  expect(await send('/v1/chat/completions', HI)).toMatchObject({ status: 200, model: 'next' })
})

test('the error of the last target is passed on, and no worker has failed', async () => {
  const { send, workers, gateway } = await open({
    fallbacks: [{ model: 'next' }, { model: 'claude', provider: 'anthropic' }],
  })
  workers[1].script(CHAT, refusal(OVERFLOWS.SGLang))
  workers[2].script(MESSAGES, refusal(OVERFLOWS.Anthropic))
  const last = await send('/v1/messages', { ...HELLO, model: 'assistant' })
  expect([last.status, last.model, JSON.parse(last.text)]).toEqual([400, 'claude', OVERFLOWS.Anthropic])
  const page = await (await fetch(gateway.metricsUrl as string)).text()
  expect(page.match(/^weir_virtual_model_fallbacks_total.*$/gm)?.sort()).toEqual([
    'weir_virtual_model_fallbacks_total{virtual_model="assistant",target="next",reason="context_length"} 1',
    'weir_virtual_model_fallbacks_total{virtual_model="assistant",target="small",reason="context_length"} 1',
  ])
  const outcomes = page.match(/^weir_worker_cb_outcomes_total.*outcome="(\w+)"} [1-9]\d*$/gm)
  expect(outcomes?.map((line) => /outcome="(\w+)"/.exec(line)?.[1])).toEqual(Array(3).fill('success'))
})

test.each([
  ['another error of the client', { error: { message: 'bad temperature', code: '400' } }],
  ['a long body', { error: { message: 'x'.repeat(100_000), code: 'context_length_exceeded' } }],
])('%s passes unchanged', async (_, body) => {
  const { send, calls, workers } = await open()
  workers[0].script(CHAT, refusal(body))
  const passed = await send('/v1/chat/completions', HI)
  expect([passed.status, passed.model]).toEqual([400, 'small'])
  expect(passed.text).toBe(JSON.stringify(body))
  expect(calls()).toEqual([1, 0, 0])
})

test('without the setting, and at the last target, the refusal passes', async () => {
  const off = await open({ fallbackOn: [] })
  expect(await off.send('/v1/chat/completions', HI)).toMatchObject({ status: 400, model: 'small' })
  expect(off.calls()).toEqual([1, 0, 0])
  const { send, workers } = await open()
  workers[0].script(CHAT, dropAnswer('reset'))
  workers[1].script(CHAT, refusal(OVERFLOWS.vLLM))
  const last = await send('/v1/chat/completions', HI)
  expect([last.status, last.model]).toEqual([400, 'next'])
  const { error } = OVERFLOWS.vLLM as { error: { message: string; code: number } }
  expect(JSON.parse(last.text)).toMatchObject({ error: { message: error.message, code: String(error.code) } })
})

test('a refusal that breaks off is a failure of the worker', async () => {
  const { send, workers } = await open()
  const json = { 'content-type': 'application/json' }
  workers[0].script(CHAT, streamAnswer(['{"error":', { drop: 'reset' }], { status: 400, headers: json }))
  expect((await send('/v1/chat/completions', HI)).status).toBe(502)
})

test('the prompt that an engine refuses over gRPC goes to the fallback', async () => {
  const { engines, post, ids } = await openGrpcFleet({
    engines: ['small', 'large'].map((pool) => ({ spec: { labels: { pool } } })),
    plugins: {
      'virtual-models': {
        models: {
          assistant: {
            targets: [{ model: 'test-model', labels: { pool: 'small' } }],
            fallbacks: [{ model: 'test-model', labels: { pool: 'large' } }],
            fallbackOn: ['context_length'],
          },
        },
      },
    },
  })
  engines[0].script = () => [
    { status: 3, details: 'Input length (9000 tokens) exceeds the maximum context length of 8192 tokens.' },
  ]
  engines[1].answer((await ids('Hello there')).map((id) => [id]))
  for (const stream of [false, true])
    expect((await post('/v1/chat/completions', { ...HI, stream })).status).toBe(200)
  expect(engines.map((engine) => engine.calls.length)).toEqual([2, 2])
})

test('the prompt that a worker of a pair refuses goes to the fallback', async () => {
  const { post, workers } = await openFleet({
    workers: [
      { models: ['small'], spec: { worker_type: 'prefill' } },
      { models: ['small'], spec: { worker_type: 'decode' } },
      { models: ['next'] },
    ],
    plugins: {
      pairs: {},
      'virtual-models': {
        models: {
          assistant: ASSISTANT,
        },
      },
    },
  })
  workers[0].script(CHAT, refusal(OVERFLOWS.SGLang))
  workers[1].script(CHAT, refusal(OVERFLOWS.SGLang))
  workers[2].script(CHAT, chatAnswer('long'))
  const answer = await post('/v1/chat/completions', HI)
  expect([answer.status, answer.headers.get('x-weir-model')]).toEqual([200, 'next'])
  expect(workers.map(({ requests }) => requests.length)).toEqual([1, 1, 1])
})

test('fallbackOn without fallbacks is rejected', async () => {
  await expect(open({ fallbacks: [] })).rejects.toThrow(/assistant\.fallbackOn.*fallbacks/)
})
