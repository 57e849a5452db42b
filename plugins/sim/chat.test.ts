import { describe, expect, test } from 'vitest'
import { defineValidator, type TSchema } from '#kernel'
import { generateChat } from './chat.ts'
import type { Generation, Setting, StreamEvent } from './generation.ts'
import { countTokens } from './tokens.ts'
import type { ChatRequest } from './wire.ts'

const setting: Setting = {
  seed: 1,
  model: 'sim-1',
  id: 'chatcmpl-t',
  createdSec: 1_700_000_000,
  startedAtMs: 0,
  tokens: 16,
  maxModelLen: 1000,
  mostTokens: Number.POSITIVE_INFINITY,
  cache: { tokens: null },
  script: null,
}
const hello: ChatRequest = { messages: [{ role: 'user', content: 'Hello there.' }] }

const whole = (request: ChatRequest, changed: Partial<Setting> = {}) =>
  JSON.parse(String(generateChat(request, { ...setting, ...changed }).body()))

function eventsOf(generation: Generation): StreamEvent[] {
  const source = generation.events()
  const events: StreamEvent[] = []
  for (let next = source.next(); next.done !== true; next = source.next()) events.push(next.value)
  return events
}

function chunksOf(request: ChatRequest, changed: Partial<Setting> = {}) {
  const data = eventsOf(generateChat(request, { ...setting, ...changed })).map(({ data }) => String(data))
  expect(data.every((one) => one.startsWith('data: ') && one.endsWith('\n\n'))).toBe(true)
  expect(data.pop()).toBe('data: [DONE]\n\n')
  return data.map((one) => JSON.parse(one.slice(6)))
}

describe('a whole chat completion', () => {
  test('has the shape that clients expect, and counts real tokens', () => {
    const reply = whole(hello)
    const { content } = reply.choices[0].message
    expect(reply).toEqual({
      id: 'chatcmpl-t',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'sim-1',
      choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 16, total_tokens: 21 },
    })
    expect(countTokens(content)).toBe(16)
  })

  test('text depends on seed, model and prompt, and on nothing else', () => {
    const text = (request: ChatRequest, changed: Partial<Setting> = {}) =>
      whole(request, changed).choices[0].message.content
    expect(text(hello)).toBe(text(hello, { id: 'other', createdSec: 5 }))
    expect(text(hello)).not.toBe(text(hello, { seed: 2 }))
    expect(text(hello)).not.toBe(text(hello, { model: 'sim-2' }))
    expect(text(hello)).not.toBe(text({ messages: [{ role: 'user', content: 'Bye.' }] }))
  })

  test('text parts of all messages count, other parts do not', () => {
    const parts = [{ type: 'text', text: 'Hello' }, { type: 'image_url' }, { type: 'text', text: ' there.' }]
    const reply = whole({
      messages: [
        { role: 'system', content: 'Be calm.' },
        { role: 'user', content: parts },
      ],
    })
    expect(reply.usage.prompt_tokens).toBe(countTokens('Be calm.') + countTokens('Hello there.'))
  })

  test('max_completion_tokens wins over max_tokens and ends with length', () => {
    const reply = whole({ ...hello, max_tokens: 9, max_completion_tokens: 4 })
    expect(reply.choices[0].finish_reason).toBe('length')
    expect(reply.usage.completion_tokens).toBe(4)
    expect(whole({ ...hello, max_tokens: 9 }).usage.completion_tokens).toBe(9)
  })

  test('n gives that many different choices, and their tokens add up', () => {
    const reply = whole({ ...hello, n: 3 })
    const texts = reply.choices.map((choice: { message: { content: string } }) => choice.message.content)
    expect(new Set(texts).size).toBe(3)
    expect(reply.choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1, 2])
    expect(reply.usage.completion_tokens).toBe(48)
  })

  test('a prompt that fills the context is refused', () => {
    expect(() => whole(hello, { maxModelLen: 5 })).toThrow('the context holds 5')
  })

  test('response_format json_object and json_schema give JSON that fits', () => {
    const object = whole({ ...hello, response_format: { type: 'json_object' } })
    expect(JSON.parse(object.choices[0].message.content)).toBeTypeOf('object')
    const schema = {
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 18 } },
      required: ['name', 'age'],
      additionalProperties: false,
    }
    const reply = whole({ ...hello, response_format: { type: 'json_schema', json_schema: { schema } } })
    const value = JSON.parse(reply.choices[0].message.content)
    expect(defineValidator(schema as unknown as TSchema).problem(value)).toBeNull()
  })

  test('a scripted text is said word for word', () => {
    const script = { text: 'As told.', count: 1, match: {} }
    expect(whole(hello, { script }).choices[0].message.content).toBe('As told.')
  })
})

describe('a streamed chat completion', () => {
  test('begins with the role, then content, then the reason, and says what the whole one says', () => {
    const chunks = chunksOf(hello)
    const deltas = chunks.map((chunk) => chunk.choices[0].delta)
    expect(
      chunks.every((chunk) => chunk.object === 'chat.completion.chunk' && chunk.id === 'chatcmpl-t'),
    ).toBe(true)
    expect(deltas[0]).toEqual({ role: 'assistant', content: '' })
    expect(deltas.map((delta) => delta.content ?? '').join('')).toBe(whole(hello).choices[0].message.content)
    expect(chunks.map((chunk) => chunk.choices[0].finish_reason)).toEqual([
      ...Array(chunks.length - 1).fill(null),
      'stop',
    ])
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
  })

  test('include_usage adds a chunk without choices, and null to the others', () => {
    const chunks = chunksOf({ ...hello, stream_options: { include_usage: true } })
    const last = chunks.pop()
    expect(last).toMatchObject({ choices: [], usage: { completion_tokens: 16, total_tokens: 21 } })
    expect(chunks.every((chunk) => chunk.usage === null)).toBe(true)
  })

  test('each token has its own time, and choices take turns', () => {
    const events = eventsOf(generateChat({ ...hello, n: 2, max_tokens: 3 }, setting))
    expect(events.filter((event) => event.tokens > 0).map((event) => event.tick)).toEqual([0, 0, 1, 1, 2, 2])
    expect(events.reduce((sum, event) => sum + event.tokens, 0)).toBe(6)
  })

  test('a stop string cuts stream and whole answer alike', () => {
    const text: string = whole(hello).choices[0].message.content
    const request = { ...hello, stop: text.split(' ')[3] }
    const joined = chunksOf(request)
      .map((chunk) => chunk.choices[0].delta.content ?? '')
      .join('')
    expect(joined).toBe(whole(request).choices[0].message.content)
    expect(text.startsWith(joined) && joined.length < text.length).toBe(true)
  })
})

describe('tool calls', () => {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
    required: ['city', 'days'],
    additionalProperties: false,
  }
  const tools = [
    { type: 'function', function: { name: 'get_time' } },
    { type: 'function', function: { name: 'get_weather', parameters } },
  ]
  const asked: ChatRequest = {
    messages: [{ role: 'user', content: 'Please call tool get_weather.' }],
    tools,
  }

  test('the words "call tool" make the model call the tool that is named, with arguments that fit', () => {
    const [choice] = whole(asked).choices
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const [call] = choice.message.tool_calls
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } })
    expect(call.id).toMatch(/^call_[0-9a-f]{24}$/)
    const args = JSON.parse(call.function.arguments)
    expect(defineValidator(parameters as unknown as TSchema).problem(args)).toBeNull()
  })

  test('streamed, id and name come first, then fragments that join to the same arguments', () => {
    const chunks = chunksOf(asked)
    const calls = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? [])
    const [first, ...rest] = calls
    const [call] = whole(asked).choices[0].message.tool_calls
    expect(first).toEqual({
      index: 0,
      id: call.id,
      type: 'function',
      function: { name: 'get_weather', arguments: '' },
    })
    expect(rest.every((part) => !('id' in part) && part.index === 0)).toBe(true)
    expect(rest.map((part) => part.function.arguments).join('')).toBe(call.function.arguments)
    expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls')
  })

  test.each([
    ['required', 'get_time'],
    [{ type: 'function', function: { name: 'get_weather' } }, 'get_weather'],
    [
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [{ type: 'function', function: { name: 'get_weather' } }],
      },
      'get_weather',
    ],
  ])('tool_choice %j calls %s', (tool_choice, name) => {
    const [choice] = whole({ ...hello, tools, tool_choice }).choices
    expect(choice.message.tool_calls[0].function.name).toBe(name)
  })

  test('tool_choice none, and a prompt that does not ask, are answered with text', () => {
    expect(whole({ ...asked, tool_choice: 'none' }).choices[0].finish_reason).toBe('stop')
    expect(whole({ ...hello, tools }).choices[0].finish_reason).toBe('stop')
  })

  test("a tool's result is answered with text, so that a loop ends", () => {
    const [{ message }] = whole(asked).choices
    const reply = whole({
      ...asked,
      messages: [...asked.messages, message, { role: 'tool', content: 'Sunny.' }],
    })
    expect(reply.choices[0].finish_reason).toBe('stop')
  })

  test('several calls can be scripted', () => {
    const script = {
      tool_calls: [
        { name: 'a', arguments: { x: 1 } },
        { name: 'b', arguments: '{"raw":true}' },
      ],
      count: 1,
      match: {},
    }
    const { tool_calls } = whole(hello, { script }).choices[0].message
    expect(tool_calls.map((call: { function: unknown }) => call.function)).toEqual([
      { name: 'a', arguments: '{"x":1}' },
      { name: 'b', arguments: '{"raw":true}' },
    ])
    const indexes = chunksOf(hello, { script }).flatMap((chunk) =>
      (chunk.choices[0].delta.tool_calls ?? []).map((part: { index: number }) => part.index),
    )
    expect(new Set(indexes)).toEqual(new Set([0, 1]))
  })
})
