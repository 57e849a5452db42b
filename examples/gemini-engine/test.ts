/** The adapter under the clients of OpenAI and Anthropic. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { startGateway, type TestGateway } from 'weir-gateway/testing'
import { type FakeGemini, startFakeGemini } from './fake-gemini.ts'
import plugin from './gemini-engine.ts'

const model = 'gemini-test'
const SIGNATURE = 'c2lnbmVk'
const CALL = { functionCall: { name: 'weather', args: { city: 'Rome' } }, thoughtSignature: SIGNATURE }
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const PIXEL = 'iVBORw0KGgo='
const question = 'How is the weather in Rome?'

let gemini: FakeGemini
let gateway: TestGateway
let folder: string
let openai: OpenAI
let anthropic: Anthropic

before(async () => {
  gemini = await startFakeGemini()
  folder = await mkdtemp(join(tmpdir(), 'gemini-engine-'))
  const worker = {
    url: gemini.url,
    provider: 'gemini',
    apis: ['gemini'],
    api_key: 'key',
    models: [{ id: model }],
  }
  gateway = await startGateway({
    own: [plugin],
    kernel: { retry: { maxAttempts: 1 } },
    plugins: {
      chat: {},
      messages: {},
      responses: {},
      history: {},
      storage: { dir: folder },
      workers: { workers: [worker] },
    },
  })
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 })
})
after(async () => {
  await gateway.stop()
  await gemini.stop()
  await rm(folder, { recursive: true })
})

const last = () =>
  gemini.received.at(-1)?.body as { contents: { role: string; parts: object[] }[] } & Record<string, never>

test('chat with an image, settings and usage; the key is in the header of Gemini', async () => {
  gemini.answers = [[[{ text: 'Let me see.', thought: true }, { text: 'A cat.' }]]]
  const completion = await openai.chat.completions.create({
    model,
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
        ],
      },
    ],
    temperature: 0.5,
    max_completion_tokens: 100,
    stop: ['END'],
  })
  const [{ message, finish_reason }] = completion.choices
  assert.equal(message.content, 'A cat.')
  assert.equal((message as { reasoning_content?: string }).reasoning_content, 'Let me see.')
  assert.equal(finish_reason, 'stop')
  assert.equal(completion.usage?.prompt_tokens, 11)
  assert.equal(completion.usage?.completion_tokens, 8)
  assert.equal(completion.usage?.completion_tokens_details?.reasoning_tokens, 3)
  const { path, key, authorization, body } = gemini.received[0]
  assert.equal(path, `/v1beta/models/${model}:generateContent`)
  assert.equal(key, 'key')
  assert.equal(authorization, undefined)
  assert.deepEqual(body, {
    contents: [
      {
        role: 'user',
        parts: [{ text: 'What is this?' }, { inlineData: { mimeType: 'image/png', data: PIXEL } }],
      },
    ],
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    generationConfig: { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['END'] },
  })
})

const chatTools = [{ type: 'function' as const, function: { name: 'weather', parameters } }]

for (const stream of [false, true])
  test(`chat: the signature of a call comes back (streamed: ${stream})`, async () => {
    gemini.answers = [[[CALL]], [[{ text: 'It is ' }], [{ text: 'sunny.' }]]]
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }]
    const request = { model, messages, tools: chatTools, tool_choice: 'required' as const }
    const answer = async () => {
      if (!stream) return (await openai.chat.completions.create(request)).choices[0].message
      return (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0].message
    }
    const called = await answer()
    const call = called.tool_calls?.[0] as OpenAI.ChatCompletionMessageFunctionToolCall
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Rome' })
    messages.push(called, {
      role: 'tool',
      tool_call_id: call.id,
      content: '{"sky":"clear"}',
    })
    assert.equal((await answer()).content, 'It is sunny.')
    const { contents, tools, toolConfig } = last()
    assert.deepEqual(contents.slice(1), [
      { role: 'model', parts: [CALL] },
      { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { sky: 'clear' } } }] },
    ])
    assert.deepEqual(tools, [
      { functionDeclarations: [{ name: 'weather', parametersJsonSchema: parameters }] },
    ])
    assert.deepEqual(toolConfig, { functionCallingConfig: { mode: 'ANY' } })
  })

for (const store of [false, true])
  test(`responses: the signature of a call comes back (stored: ${store})`, async () => {
    gemini.answers = [[[{ text: 'Hm.', thought: true }], [CALL]], [[{ text: 'Sunny.' }]]]
    const tools = [{ type: 'function' as const, name: 'weather', parameters, strict: false }]
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: question }]
    const first = await openai.responses.create({ model, input, tools, store })
    const call = first.output.find(
      ({ type }) => type === 'function_call',
    ) as OpenAI.Responses.ResponseFunctionToolCall
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'sunny' }
    const next = store
      ? { previous_response_id: first.id, input: [result] }
      : { input: [...input, ...(first.output as OpenAI.Responses.ResponseInput), result] }
    const stream = openai.responses.stream({ model, tools, store, ...next })
    assert.equal((await stream.finalResponse()).output_text, 'Sunny.')
    assert.deepEqual(last().contents[1], { role: 'model', parts: [CALL] })
  })

for (const stream of [false, true])
  test(`messages: thinking and a call, whose signature comes back (streamed: ${stream})`, async () => {
    gemini.answers = [[[{ text: 'Hm.', thought: true }], [CALL]], [[{ text: 'Sunny.' }]]]
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }]
    const request: Anthropic.MessageCreateParamsNonStreaming = {
      model,
      max_tokens: 2_000,
      messages,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      tools: [{ name: 'weather', input_schema: parameters as Anthropic.Tool.InputSchema }],
    }
    const answer = () =>
      stream ? anthropic.messages.stream(request).finalMessage() : anthropic.messages.create(request)
    const first = await answer()
    assert.deepEqual(
      first.content.map(({ type }) => type),
      ['thinking', 'tool_use'],
    )
    assert.equal(first.stop_reason, 'tool_use')
    const use = first.content[1] as Anthropic.ToolUseBlock
    messages.push(
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'sunny' }] },
    )
    const [text] = (await answer()).content
    assert.equal(text.type === 'text' && text.text, 'Sunny.')
    assert.deepEqual(last().contents[1], { role: 'model', parts: [CALL] })
    assert.deepEqual((last().generationConfig as { thinkingConfig: object }).thinkingConfig, {
      includeThoughts: true,
      thinkingBudget: 1_024,
    })
  })

test('responses: the signature of a text comes back', async () => {
  gemini.answers = [[[{ text: 'Hello.' }], [{ text: '', thoughtSignature: SIGNATURE }]]]
  const hello = { role: 'user' as const, content: 'Hello' }
  const first = await openai.responses.stream({ model, input: [hello], store: true }).finalResponse()
  await openai.responses.create({ model, input: [hello], previous_response_id: first.id })
  assert.deepEqual(last().contents[1], {
    role: 'model',
    parts: [{ text: 'Hello.', thoughtSignature: SIGNATURE }],
  })
})

test('errors of Gemini keep status and message in both formats', async () => {
  gemini.error = { status: 400, message: 'API key not valid.' }
  const hello = [{ role: 'user' as const, content: 'Hello' }]
  await assert.rejects(openai.chat.completions.create({ model, messages: hello }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError)
    return /API key not valid/.test(error.message)
  })
  gemini.error = { status: 429, message: 'Quota exceeded.' }
  await assert.rejects(
    anthropic.messages.create({ model, max_tokens: 9, messages: hello }),
    (error) => error instanceof Anthropic.RateLimitError && /Quota exceeded/.test(error.message),
  )
})

test('a blocked answer ends with content_filter', async () => {
  gemini.answers = [[[{ text: 'I' }]]]
  gemini.finishReason = 'SAFETY'
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const { choices } = await openai.chat.completions.create({ model, messages })
  assert.equal(choices[0].finish_reason, 'content_filter')
})
