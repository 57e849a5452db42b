/** Unmodified clients of the Responses API against the built gateway with two data threads and a store on disk: the official client, the agents SDK, the AI SDK. */
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { tool as aiTool, generateText, jsonSchema, stepCountIs, streamText } from 'ai'
import OpenAI, { APIError, NotFoundError } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { type ChatAnswer, chatAnswer, chunk } from '../support/chat-script.ts'
import {
  type Script,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses of any shape
type ResponseJson = any

const CHAT = 'POST /v1/chat/completions'
const model = 'test-model'
let gateway: BuiltGateway
let worker: ScriptedWorker
let client: OpenAI

beforeAll(async () => {
  worker = await startScriptedWorker({ models: [model] })
  gateway = await startBuiltGateway({
    plugins: {
      generations: {},
      storage: { dir: makeFolder() },
      history: {},
      responses: { background: { pollMs: 50 } },
    },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
  })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
})

afterAll(async () => {
  await stopCommands()
  await worker?.close()
})

/** Scripts the worker: each of `first` once, then `last`. */
function respond(last: Script, ...first: Script[]): void {
  worker.requests.length = 0
  for (const script of first) worker.once(CHAT, script)
  worker.script(CHAT, last)
}

const weather = {
  type: 'function' as const,
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}
const toolCall: ChatAnswer = {
  tool_calls: [{ id: 'call_w', name: 'get_weather', arguments: '{"city":"Bern"}' }],
}
const mixed = { reasoning_content: 'let me see', content: 'one moment', ...toolCall }

const aiProvider = () => createOpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' })

test('create, retrieve, input items, delete, and the error classes of the client', async () => {
  respond(chatAnswer('hello there'))
  const reply = await client.responses.create({ model, input: 'hi' })
  expect(reply.output_text).toBe('hello there')
  expect((await client.responses.retrieve(reply.id)).output_text).toBe('hello there')
  const items: unknown[] = []
  for await (const item of client.responses.inputItems.list(reply.id)) items.push(item)
  expect(items).toHaveLength(1)
  const next = await client.responses.create({ model, input: 'and?', previous_response_id: reply.id })
  expect(next.previous_response_id).toBe(reply.id)
  await client.responses.delete(reply.id)
  await expect(client.responses.retrieve(reply.id)).rejects.toBeInstanceOf(NotFoundError)
})

test('the stream helper handles every kind of stream, and its final response equals the stored one', async () => {
  for (const output of [{ content: 'hello' }, { content: 'a', reasoning_content: 'b' }, toolCall, mixed]) {
    respond(chatAnswer(output))
    const stream = client.responses.stream({ model, input: 'hi', tools: [weather] })
    for await (const _ of stream);
    const final = await stream.finalResponse()
    const { output_text: _, ...stored } = (await client.responses.retrieve(
      final.id,
    )) as unknown as ResponseJson
    const plain = JSON.parse(JSON.stringify(final))
    delete plain.output_text
    for (const item of plain.output) {
      delete item.parsed_arguments
      for (const part of item.content ?? []) delete part.parsed
    }
    delete plain.output_parsed
    expect(plain).toEqual(stored)
  }
})

test('parse returns output constrained by a schema', async () => {
  respond(chatAnswer('{"city":"Bern"}'))
  const reply = await client.responses.parse({
    model,
    input: 'where?',
    text: { format: { type: 'json_schema', name: 'place', strict: true, schema: weather.parameters } },
  })
  expect(reply.output_text).toBe('{"city":"Bern"}')
})

test('polling of a background response, and resuming its stream', async () => {
  respond(chatAnswer('in the end'))
  let reply = await client.responses.create({ model, input: 'hi', background: true })
  while (reply.status === 'queued' || reply.status === 'in_progress')
    reply = await client.responses.retrieve(reply.id)
  expect([reply.status, reply.output_text]).toEqual(['completed', 'in the end'])
  const stream = client.responses.stream({ response_id: reply.id })
  for await (const _ of stream);
  expect((await stream.finalResponse()).output_text).toBe('in the end')
  let text = ''
  for await (const event of await client.responses.retrieve(reply.id, { stream: true, starting_after: 3 }))
    if (event.type === 'response.output_text.done') text = event.text
  expect(text).toBe('in the end')
})

test('a failed stream raises an APIError', async () => {
  respond(() => sseAnswer([chunk({ content: 'x' }), { drop: 'close' }]))
  const stream = await client.responses.create({ model, input: 'hi', stream: true })
  const read = async () => {
    for await (const _ of stream);
  }
  await expect(read()).rejects.toBeInstanceOf(APIError)
})

test('the agents SDK runs a tool, streamed and not', async () => {
  for (const stream of [false, true]) {
    respond(chatAnswer('It rains in Bern.'), chatAnswer(toolCall))
    const cities: string[] = []
    const agent = new Agent({
      name: 'Weather',
      instructions: 'You tell the weather.',
      model,
      tools: [
        tool({
          name: 'get_weather',
          description: 'The weather of a city',
          strict: false,
          parameters: {
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: true,
          },
          execute: (input) => {
            cities.push((input as { city: string }).city)
            return 'rain'
          },
        }),
      ],
    })
    const modelProvider = new OpenAIProvider({ openAIClient: client, useResponses: true })
    const runner = new Runner({ modelProvider, tracingDisabled: true })
    const question = 'What is the weather in Bern?'
    if (stream) {
      const result = await runner.run(agent, question, { stream: true })
      for await (const _ of result);
      await result.completed
      expect(result.finalOutput).toBe('It rains in Bern.')
    } else expect((await runner.run(agent, question)).finalOutput).toBe('It rains in Bern.')
    expect(cities).toEqual(['Bern'])
  }
})

test('the AI SDK streams text, reasoning, calls and truncated output, with finish reasons and usage', async () => {
  const cases = [
    [{ content: 'hello' }, 'stop'],
    [{ content: 'a', reasoning_content: 'b' }, 'stop'],
    [{ content: 'cut', finish: 'length' }, 'length'],
    [toolCall, 'tool-calls'],
  ] as const
  for (const [output, reason] of cases) {
    respond(chatAnswer(output))
    const result = streamText({
      model: aiProvider().responses(model),
      prompt: 'hi',
      tools: { get_weather: aiTool({ inputSchema: jsonSchema({ type: 'object', properties: {} }) }) },
    })
    await result.consumeStream()
    expect(await result.finishReason).toBe(reason)
    expect(await result.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 })
  }
})

test('the AI SDK runs a tool in steps, with references to stored items', async () => {
  respond(chatAnswer('It rains.'), chatAnswer({ content: 'one moment', ...toolCall }))
  const { text } = await generateText({
    model: aiProvider().responses(model),
    prompt: 'Weather in Bern?',
    stopWhen: stepCountIs(3),
    tools: {
      get_weather: aiTool({
        inputSchema: jsonSchema<{ city: string }>({
          type: 'object',
          properties: { city: { type: 'string' } },
        }),
        execute: async ({ city }) => `rain in ${city}`,
      }),
    },
  })
  expect(text).toBe('It rains.')
  expect((worker.requestsTo(CHAT)[1].json() as ResponseJson).messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: 'one moment', tool_calls: [{ id: 'call_w' }] },
    { role: 'tool', tool_call_id: 'call_w' },
  ])
})
