/** Custom tools of chat clients, whose input is a text, over workers of every HTTP format. */
import { describe, expect, test } from 'vitest'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openFleet } from './fleet.ts'
import { VENDOR } from './messages-fleet.ts'

const PATH = '/v1/chat/completions'
const INPUT = '*** Begin Patch\n"é"'
const GRAMMAR = { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } }
const BODY = {
  model: 'test-model',
  messages: [
    { role: 'user', content: 'edit' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_1', type: 'custom', custom: { name: 'patch', input: INPUT } },
        { id: 'call_2', type: 'function', function: { name: 'look', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    { role: 'tool', tool_call_id: 'call_2', content: 'seen' },
    { role: 'user', content: 'again' },
  ],
  tools: [
    { type: 'custom', custom: { name: 'patch', description: 'patches', format: GRAMMAR } },
    { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } },
  ],
}
const CALL = { id: 'call_9', type: 'custom', custom: { name: 'patch', input: INPUT } }
const ARGUMENTS = JSON.stringify({ input: INPUT })

const ITEM = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_9', name: 'patch', input: INPUT }
const RESPONSE = { id: 'r', object: 'response', model: 'm', status: 'completed', output: [ITEM] }
const MESSAGE = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'tool_use', id: 'call_9', name: 'patch', input: { input: INPUT } }],
  stop_reason: 'tool_use',
  usage: { input_tokens: 1, output_tokens: 1 },
}
const toolCalls = [
  { index: 0, id: 'call_9', type: 'function', function: { name: 'patch', arguments: ARGUMENTS } },
]
const CHAT = {
  id: 'c',
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: null, tool_calls: toolCalls },
      finish_reason: 'tool_calls',
    },
  ],
}
const frames = (...events: object[]) => sseAnswer(events.map((event) => JSON.stringify(event)))

const LANES = {
  responses: {
    worker: { spec: { apis: ['responses'] } },
    route: 'POST /v1/responses',
    whole: RESPONSE,
    events: [
      { type: 'response.created', response: { ...RESPONSE, output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...ITEM, input: '' } },
      { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: INPUT },
      { type: 'response.custom_tool_call_input.done', output_index: 0, input: INPUT },
      { type: 'response.output_item.done', output_index: 0, item: ITEM },
      { type: 'response.completed', response: RESPONSE },
    ],
  },
  messages: {
    worker: VENDOR,
    route: 'POST /v1/messages',
    whole: MESSAGE,
    events: [
      { type: 'message_start', message: { ...MESSAGE, content: [] } },
      { type: 'content_block_start', index: 0, content_block: { ...MESSAGE.content[0], input: {} } },
      { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: ARGUMENTS } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ],
  },
  chat: {
    worker: {},
    route: 'POST /v1/chat/completions',
    whole: CHAT,
    events: [
      { id: 'c', model: 'm', choices: [{ index: 0, delta: { tool_calls: toolCalls }, finish_reason: null }] },
      { id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    ],
  },
} as const

async function open(name: keyof typeof LANES) {
  const { worker } = LANES[name]
  const fleet = await openFleet({
    workers: [worker as object],
    plugins: { messages: {}, responses: {}, chat: name === 'chat' ? { chat: 'normalize' } : {} },
  })
  const [first] = fleet.workers
  const sent = () => first.requestsTo(LANES[name].route)[0].json() as Record<string, unknown>
  return { ...fleet, first, sent }
}

describe.each(['responses', 'messages', 'chat'] as const)('over a worker of the %s format', (name) => {
  const { route, whole, events } = LANES[name]

  test('the call of a whole answer has the type custom, with the text as its input', async () => {
    const { post, first } = await open(name)
    first.script(route, jsonAnswer(whole))
    const answer = (await (await post(PATH, BODY)).json()) as typeof CHAT
    expect(answer.choices[0].message.tool_calls).toEqual([CALL])
    expect(answer.choices[0].finish_reason).toBe('tool_calls')
  })

  test('the chunks of a stream add up to the same call', async () => {
    const { gateway, first } = await open(name)
    first.script(
      route,
      name === 'chat'
        ? sseAnswer([...events.map((one) => JSON.stringify(one)), '[DONE]'])
        : frames(...events),
    )
    const stream = openSse(gateway.url + PATH, { body: { ...BODY, stream: true } })
    await stream.done
    const deltas = stream.events
      .filter(({ data }) => data !== '[DONE]')
      .flatMap(({ data }) => JSON.parse(data).choices[0]?.delta.tool_calls ?? [])
    expect(deltas[0]).toEqual({ index: 0, ...CALL, custom: { name: 'patch', input: '' } })
    expect(deltas.slice(1).map((delta) => [delta.index, delta.custom.input])).toEqual([[0, INPUT]])
  })
})

test('Responses workers get the tool, its earlier call and result as they have them', async () => {
  const { post, sent } = await open('responses')
  await post(PATH, { ...BODY, tool_choice: { type: 'custom', custom: { name: 'patch' } } })
  const { tools, tool_choice, input } = sent() as Record<string, unknown>
  expect(tools).toMatchObject([
    {
      type: 'custom',
      name: 'patch',
      description: 'patches',
      format: { type: 'grammar', ...GRAMMAR.grammar },
    },
    { type: 'function', name: 'look' },
  ])
  expect(tool_choice).toEqual({ type: 'custom', name: 'patch' })
  expect(input).toMatchObject([
    { role: 'user' },
    { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: INPUT },
    { type: 'function_call', call_id: 'call_2', name: 'look' },
    { type: 'custom_tool_call_output', call_id: 'call_1', output: 'done' },
    { type: 'function_call_output', call_id: 'call_2', output: 'seen' },
    { role: 'user' },
  ])
})

test('other workers get a function with one text, whose description holds the grammar', async () => {
  const { post, sent } = await open('messages')
  await post(PATH, BODY)
  const [tool] = (sent() as { tools: { name: string; description: string; input_schema: object }[] }).tools
  expect(tool).toMatchObject({ name: 'patch', input_schema: { required: ['input'] } })
  expect(tool.description).toBe('patches\n\nThe input follows this lark grammar:\nstart: "a"')
  const { messages } = sent() as { messages: { content: unknown }[] }
  expect(messages[1].content).toMatchObject([
    { type: 'tool_use', id: 'call_1', name: 'patch', input: { input: INPUT } },
    { type: 'tool_use', id: 'call_2' },
  ])
})

test.each(['responses', 'messages'] as const)(
  'allowed tools may name a custom tool over %s',
  async (name) => {
    const { post, sent } = await open(name)
    const tools = [{ type: 'custom', custom: { name: 'patch' } }]
    await post(PATH, {
      ...BODY,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } },
    })
    if (name === 'responses')
      expect(sent().tool_choice).toEqual({
        type: 'allowed_tools',
        mode: 'required',
        tools: [{ type: 'custom', name: 'patch' }],
      })
    else {
      expect(sent().tool_choice).toEqual({ type: 'any' })
      expect((sent().tools as object[]).map((tool) => 'name' in tool && tool.name)).toEqual(['patch'])
    }
  },
)

test('a tool of an unknown type is rejected where it cannot be sent as it is', async () => {
  const { post } = await open('responses')
  const reply = await post(PATH, { ...BODY, tools: [{ type: 'remote', remote: {} }] })
  expect([reply.status, ((await reply.json()) as { error: { param: string } }).error.param]).toEqual([
    400,
    'tools.0.type',
  ])
})
