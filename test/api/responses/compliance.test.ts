/** The templates of the Open Responses compliance suite, their replies and events checked against the published shapes. */
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { defineValidator, type TSchema } from '#kernel'
import { type Json, openResponses, type Reply, type ResponsesFleet, says } from './responses-fleet.ts'

const shapes = createRequire(import.meta.url)('../../fixtures/open-responses-shapes.json') as {
  components: { schemas: Record<string, Json> }
}
const validators = new Map(
  Object.keys(shapes.components.schemas).map((name) => [
    name,
    defineValidator({ ...shapes, $ref: `#/components/schemas/${name}` } as unknown as TSchema),
  ]),
)

function expectShape(name: string, value: unknown): void {
  const validator = validators.get(name)
  if (validator === undefined) throw new Error(`no shape ${name}`)
  // Of a copy: defaults are filled in.
  expect([name, validator.problem(structuredClone(value))]).toEqual([name, null])
}

test('the shapes refuse what they should', () => {
  expect(() => expectShape('ResponseResource', { id: 'x' })).toThrow()
  expect(() => expectShape('ResponseOutputTextDeltaStreamingEvent', { delta: 'x' })).toThrow()
})

/** By the type that an event tells. */
const eventShapes = new Map(
  Object.keys(shapes.components.schemas)
    .filter((name) => name.endsWith('StreamingEvent'))
    .map((name) => {
      const { type } = (shapes.components.schemas[name] as Reply).properties
      return [type.enum?.[0] ?? type.const, name]
    }),
)

const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const message = (role: string, content: unknown, more: object = {}) => ({
  type: 'message',
  role,
  content,
  ...more,
})

const templates: readonly [string, Json][] = [
  ['basic-response', { input: [message('user', 'Say hello in exactly 3 words.')] }],
  [
    'assistant-phase',
    {
      input: [
        message('assistant', 'let me see', { phase: 'commentary' }),
        message('assistant', 'it is four', { phase: 'final_answer' }),
        message('user', 'and now?'),
      ],
    },
  ],
  ['system-prompt', { input: [message('system', 'You are a pirate.'), message('user', 'Say hello.')] }],
  [
    'image-input',
    {
      input: [
        message('user', [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: PNG },
        ]),
      ],
    },
  ],
  [
    'multi-turn',
    {
      input: [message('user', 'I am Ada.'), message('assistant', 'Hello Ada.'), message('user', 'Who am I?')],
    },
  ],
]

test('responses 8 #2, #89, 7.1: the plain templates pass, whole and streamed', async () => {
  const fleet = await openResponses(says('hello my friend'))
  for (const [name, body] of templates) {
    const reply = await fleet.create(body)
    expectShape('ResponseResource', reply)
    expect([name, reply.status, reply.output.length]).toEqual([name, 'completed', 1])
    await streamOf(fleet, body)
  }
})

async function streamOf(fleet: ResponsesFleet, body: Json): Promise<Reply> {
  const { events, response } = await fleet.stream(body)
  for (const event of events) {
    const shape = eventShapes.get(event.type)
    if (shape === undefined) throw new Error(`no shape for ${event.type}`)
    expectShape(shape, event)
  }
  expectShape('ResponseResource', response)
  return response
}

test('responses 7.1: tool-calling, whole, streamed, and back with the output alone', async () => {
  const tool_calls = [{ id: 'call_1', name: 'get_weather', arguments: '{"location":"Bern"}' }]
  const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] }
  const tools = [{ type: 'function', name: 'get_weather', description: 'The weather', parameters }]
  const fleet = await openResponses(says({ tool_calls }))
  const body = { input: [message('user', 'Weather in Bern?')], tools }
  const reply = await fleet.create(body)
  expectShape('ResponseResource', reply)
  expect(reply.output[0]).toMatchObject({ type: 'function_call', name: 'get_weather' })
  expect((await streamOf(fleet, body)).output).toMatchObject([{ type: 'function_call' }])
  fleet.workers[0].script('POST /v1/chat/completions', says('It rains.'))
  const output = { type: 'function_call_output', call_id: 'call_1', output: '{"rain":true}' }
  const next = await fleet.create({ previous_response_id: reply.id, input: [output] })
  expectShape('ResponseResource', next)
  expect(next.status).toBe('completed')
})

test('responses 7.1: compact-response, compact-missing-model', async () => {
  const { post } = await openResponses(says('short'))
  const input = [message('user', 'one'), message('assistant', 'two')]
  const reply = await post('/v1/responses/compact', { model: 'test-model', input, prompt_cache_key: 'k' })
  expect(reply.status).toBe(200)
  expectShape('CompactResource', await reply.json())
  expect((await post('/v1/responses/compact', { input })).status).toBe(400)
})

test('responses 1.7: cut and failed responses have the shape too', async () => {
  const cut = await openResponses(says({ content: 'cut', finish: 'length', reasoning_content: 'hm' }))
  expectShape('ResponseResource', await cut.create({ input: 'hi', reasoning: { summary: 'auto' } }))
})
