/** Unmodified clients of the Messages API: the vendor's SDK and the AI SDK, over scripted workers. */
import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { type ChatBody, chatEngine, type Turn, toolResults } from '../support/chat-turns.ts'
import { type ScriptedEngine, startScriptedEngine } from '../support/scripted-engine.ts'
import {
  type Answer,
  jsonAnswer,
  type RecordedRequest,
  type ScriptedWorker,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const MESSAGES = 'POST /v1/messages'
const VENDOR = { runtime_type: 'external', provider: 'anthropic', labels: { provider: 'anthropic' } }

const workers: (ScriptedWorker | ScriptedEngine)[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

/** One gateway process in front of one scripted worker. */
async function openGateway(plugins: Record<string, unknown> = {}, spec: Record<string, unknown> = {}) {
  const worker = await startScriptedWorker()
  workers.push(worker)
  const gateway = await startBuiltGateway({
    kernel: { threads: 1 },
    plugins: { messages: {}, generations: {}, ...plugins },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }], ...spec }],
  })
  return { gateway, worker }
}

const WEATHER: Anthropic.Tool = {
  name: 'weather',
  description: 'Looks out of the window',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const requestFor = (text: string) => ({
  model: 'test-model',
  max_tokens: 4_096,
  messages: [{ role: 'user' as const, content: text }],
})

describe('@anthropic-ai/sdk over a chat worker', () => {
  async function open(turnOf: (body: ChatBody) => Turn) {
    const { gateway, worker } = await openGateway({ auth: { apiKey: 'key' } })
    worker.script(CHAT, chatEngine(turnOf))
    return {
      client: new Anthropic({ baseURL: gateway.url, apiKey: 'key', maxRetries: 0 }),
      worker,
    }
  }

  test('create', async () => {
    const { client } = await open(() => ({ text: 'Hello there' }))
    const message = await client.messages.create(requestFor('Hi'))
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Hello there' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 21, output_tokens: 7 },
    })
    expect(message._request_id).toMatch(/^req_/)
  })

  test('the stream helper runs a tool and ends its turn', async () => {
    const { client, worker } = await open((body) =>
      toolResults(body) === 0
        ? {
            reasoning: 'I have to look.',
            text: 'Let me see.',
            call: { name: 'weather', input: { city: 'Kyoto' } },
          }
        : { text: 'It rains.' },
    )
    const first = await client.messages
      .stream({
        ...requestFor('Weather?'),
        tools: [WEATHER],
        thinking: { type: 'enabled', budget_tokens: 2_048 },
      })
      .finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    expect(first.content).toMatchObject([
      { type: 'thinking', thinking: 'I have to look.', signature: '' },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool_use', id: 'toolu_call_1', name: 'weather', input: { city: 'Kyoto' } },
    ])
    const call = first.content[2] as Anthropic.ToolUseBlock
    const second = await client.messages
      .stream({
        ...requestFor('Weather?'),
        tools: [WEATHER],
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: first.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'rain' }] },
        ],
      })
      .finalMessage()
    expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'It rains.' }] })
    const { messages } = worker.requestsTo(CHAT)[1].json() as ChatBody
    expect(messages[1]).toMatchObject({ reasoning_content: 'I have to look.', content: 'Let me see.' })
    expect(messages[2]).toEqual({ role: 'tool', tool_call_id: 'call_1', content: 'rain' })
  })

  test('beta headers, and token counting', async () => {
    const { client, worker } = await open(() => ({ text: 'ok' }))
    const message = await client.beta.messages.create({
      ...requestFor('Hi'),
      betas: ['context-1m-2025-08-07'],
    })
    expect(message.content).toMatchObject([{ type: 'text', text: 'ok' }])
    const { input_tokens: count } = await client.messages.countTokens({
      model: 'test-model',
      messages: requestFor('Hi').messages,
    })
    expect(count).toBeGreaterThan(0)
    expect(worker.requestsTo(CHAT)).toHaveLength(1)
  })

  test('errors have the class, type and request id of the client', async () => {
    const { client } = await open(() => ({ text: 'ok' }))
    const failure = await client.messages
      .create({ ...requestFor('Hi'), model: 'missing' })
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Anthropic.NotFoundError)
    expect(failure).toMatchObject({ status: 404, requestID: expect.stringMatching(/^req_/) })
  })
})

describe('@anthropic-ai/sdk over gRPC', () => {
  /** A gRPC engine that generates the texts one after the other, one token per message. */
  async function open(texts: readonly string[]) {
    const engine = await startScriptedEngine()
    workers.push(engine)
    const gateway = await startBuiltGateway({
      kernel: { threads: 1 },
      plugins: {
        generations: {},
        messages: {},
        grpc: {},
        parsers: { toolParser: 'qwen', reasoningParser: 'qwen3' },
        tokenizers: { load: [{ name: 'test-model', source: 'weir:sample' }] },
      },
      workers: [{ url: engine.url }],
    })
    const tokenize = (prompt: string) =>
      gateway.send('POST', '/v1/tokenize', { model: 'test-model', prompt, add_special_tokens: false })
    await until(async () => (await tokenize('x')).status === 200)
    const answers: number[][] = []
    for (const text of texts)
      answers.push(((await (await tokenize(text)).json()) as { tokens: number[] }).tokens)
    let at = 0
    engine.script = ({ request }) =>
      engine.steps(
        answers[Math.min(at++, answers.length - 1)].map((id) => [id]),
        {},
        request,
      )
    return { client: new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 }), engine }
  }

  test('create, a beta, and token counting', async () => {
    const { client, engine } = await open(['Hello there'])
    const message = await client.messages.create(requestFor('Hi'))
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'Hello there' }],
      stop_reason: 'end_turn',
    })
    expect(message._request_id).toMatch(/^req_/)
    const beta = await client.beta.messages.create({ ...requestFor('Hi'), betas: ['context-1m-2025-08-07'] })
    expect(beta.content).toMatchObject([{ type: 'text', text: 'Hello there' }])
    const { input_tokens: count } = await client.messages.countTokens({
      model: 'test-model',
      messages: requestFor('Hi').messages,
    })
    const { tokenized } = engine.calls[0].request as { tokenized: { inputIds: number[] } }
    expect(count).toBe(tokenized.inputIds.length)
  })

  test('the stream helper: thinking, a tool, its result', async () => {
    const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Kyoto"}}\n</tool_call>'
    const { client } = await open([`<think>I have to look.</think>${call}`, 'It rains.'])
    const fields = { tools: [WEATHER], thinking: { type: 'enabled' as const, budget_tokens: 2_048 } }
    const first = await client.messages.stream({ ...requestFor('Weather?'), ...fields }).finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    expect(first.content).toMatchObject([
      { type: 'thinking', thinking: 'I have to look.', signature: '' },
      { type: 'tool_use', name: 'weather', input: { city: 'Kyoto' } },
    ])
    const { id } = first.content[1] as Anthropic.ToolUseBlock
    const second = await client.messages
      .stream({
        ...requestFor('Weather?'),
        ...fields,
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: first.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
        ],
      })
      .finalMessage()
    expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'It rains.' }] })
  })
})

const USAGE = { input_tokens: 3, output_tokens: 4 }

test('@anthropic-ai/sdk over a worker with the Messages API', async () => {
  const { gateway, worker } = await openGateway({}, VENDOR)
  const client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 })
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'v',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: USAGE,
  }
  worker.script(MESSAGES, (request) => {
    const { stream } = request.json() as { stream?: boolean }
    if (stream !== true)
      return jsonAnswer({ ...message, content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' })
    const events = [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 4 },
      },
      { type: 'message_stop' },
    ]
    const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    return streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } })
  })
  worker.script('POST /v1/messages/count_tokens', jsonAnswer({ input_tokens: 5 }))
  const whole = await client.messages.create(requestFor('Hi'))
  const streamed = await client.messages.stream(requestFor('Hi')).finalMessage()
  expect(whole.content).toEqual([{ type: 'text', text: 'Hello' }])
  expect(streamed.content).toMatchObject(whole.content)
  expect(
    (await client.messages.countTokens({ model: 'test-model', messages: requestFor('Hi').messages }))
      .input_tokens,
  ).toBe(5)
})

/** A streamed turn with thinking and a tool call; the second turn contains the tool result. */
function vendorTurn(request: RecordedRequest): Answer {
  const { messages } = request.json() as { messages: { content: unknown }[] }
  const hasResult = JSON.stringify(messages.at(-1)).includes('tool_result')
  const blocks: readonly (readonly [start: object, ...deltas: object[]])[] = hasResult
    ? [
        [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'It rains.' },
        ],
      ]
    : [
        [
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'I have to look.' },
          { type: 'signature_delta', signature: 'sig-1' },
        ],
        [
          { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} },
          { type: 'input_json_delta', partial_json: '{"city":' },
          { type: 'input_json_delta', partial_json: '"Kyoto"}' },
        ],
      ]
  const start = { id: 'msg_1', type: 'message', role: 'assistant', model: 'v', content: [] }
  const reason = hasResult ? 'end_turn' : 'tool_use'
  const events: readonly { type: string; [member: string]: unknown }[] = [
    { type: 'message_start', message: { ...start, stop_reason: null, stop_sequence: null, usage: USAGE } },
    ...blocks.flatMap(([block, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { output_tokens: 4 },
    },
    { type: 'message_stop' },
  ]
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  return streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } })
}

test('@anthropic-ai/sdk over a cloud service: thinking, a tool, betas, and the model list', async () => {
  const { gateway, worker } = await openGateway(
    { messages: {}, 'virtual-models': { models: { 'claude-mine': { targets: [{ model: 'test-model' }] } } } },
    VENDOR,
  )
  const client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 })
  worker.script(MESSAGES, vendorTurn)
  const fields = { ...requestFor('Weather?'), model: 'claude-mine', tools: [WEATHER] }
  const first = await client.beta.messages
    .stream({
      ...fields,
      thinking: { type: 'enabled', budget_tokens: 2_048 },
      betas: ['interleaved-thinking-2025-05-14'],
    })
    .finalMessage()
  expect(first.content).toMatchObject([
    { type: 'thinking', thinking: 'I have to look.', signature: 'sig-1' },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Kyoto' } },
  ])
  const history = [
    ...fields.messages,
    { role: 'assistant' as const, content: first.content as Anthropic.ContentBlockParam[] },
    {
      role: 'user' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'rain' }],
    },
  ]
  const second = await client.messages.stream({ ...fields, messages: history }).finalMessage()
  expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'It rains.' }] })
  const [one, two] = worker.requestsTo(MESSAGES)
  expect(one.header('anthropic-beta')).toBe('interleaved-thinking-2025-05-14')
  expect((two.json() as { model: string }).model).toBe('test-model')
  expect((two.json() as { messages: unknown[] }).messages[1]).toEqual(history[1])
  const models: string[] = []
  for await (const { id, type } of client.models.list({ limit: 1_000 })) models.push(`${type} ${id}`)
  expect(models).toEqual(['model test-model', 'model claude-mine'])
})

test('the OpenAI client over a cloud service: thinking, a tool, its result, streamed', async () => {
  const { gateway, worker } = await openGateway({}, VENDOR)
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
  worker.script(MESSAGES, vendorTurn)
  const tools = [
    { type: 'function' as const, function: { name: 'weather', parameters: WEATHER.input_schema } },
  ]
  const question = { role: 'user' as const, content: 'Weather?' }
  const first = await client.chat.completions
    .stream({ model: 'test-model', messages: [question], tools, reasoning_effort: 'high' })
    .finalChatCompletion()
  const { message, finish_reason: reason } = first.choices[0]
  expect(reason).toBe('tool_calls')
  expect(message.tool_calls).toMatchObject([
    { id: 'toolu_1', function: { name: 'weather', arguments: '{"city":"Kyoto"}' } },
  ])
  const result = { role: 'tool' as const, tool_call_id: 'toolu_1', content: 'rain' }
  const second = await client.chat.completions
    .stream({ model: 'test-model', messages: [question, message, result], tools })
    .finalChatCompletion()
  expect(second.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'It rains.' } })
})

test('messages @ai-sdk/anthropic generates, streams and runs a tool over a chat worker', async () => {
  const { gateway, worker } = await openGateway()
  worker.script(
    CHAT,
    chatEngine((body) =>
      body.tools !== undefined && toolResults(body) === 0
        ? { call: { name: 'weather', input: { city: 'Oslo' } } }
        : { text: 'It snows.' },
    ),
  )
  const model = createAnthropic({ baseURL: `${gateway.url}/v1`, apiKey: 'none' })('test-model')
  const plain = streamText({ model, prompt: 'Weather?', maxRetries: 0 })
  let streamed = ''
  for await (const part of plain.textStream) streamed += part
  expect(streamed).toBe('It snows.')
  const seen: unknown[] = []
  const weather = tool({
    description: 'd',
    inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
    execute: async (input) => {
      seen.push(input)
      return 'snow'
    },
  })
  const result = await generateText({
    model,
    prompt: 'Weather?',
    maxRetries: 0,
    tools: { weather },
    stopWhen: stepCountIs(3),
  })
  expect(seen).toEqual([{ city: 'Oslo' }])
  expect([result.text, result.finishReason]).toEqual(['It snows.', 'stop'])
})
