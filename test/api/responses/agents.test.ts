/** Requests of coding agents over workers with chat completions only. */
import { expect, test } from 'vitest'
import { CHAT, chatAnswer, type Json, openResponses, type ResponseJson } from './responses-fleet.ts'
import { check, connect } from './socket-client.ts'

const PATCH = '*** Begin Patch\n+x "q"\n*** End Patch'

test('a custom tool becomes a function, and its call has the raw input, also in later turns', async () => {
  const { stream, create, asked, workers } = await openResponses()
  workers[0].script(CHAT, calls('apply_patch', JSON.stringify({ input: PATCH })))
  const tools = [
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'edits files',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/s' },
    },
  ]
  const { response, types } = await stream({ input: 'hi', tools })
  expect(asked()[0].tools[0].function).toMatchObject({
    name: 'apply_patch',
    description: expect.stringContaining('start: /.+/s'),
    parameters: { required: ['input'] },
  })
  expect(response.output).toMatchObject([{ type: 'custom_tool_call', name: 'apply_patch', input: PATCH }])
  expect(types).toContain('response.custom_tool_call_input.done')
  expect(response.tools).toEqual(tools)

  workers[0].script(CHAT, chatAnswer('done'))
  const [call] = response.output
  const output = { type: 'custom_tool_call_output', call_id: call.call_id, output: 'ok' }
  await create({ input: [{ role: 'user', content: 'hi' }, call, output], tools })
  const [, turn, result] = asked()[1].messages
  expect(JSON.parse(turn.tool_calls[0].function.arguments)).toEqual({ input: PATCH })
  expect(result).toMatchObject({ role: 'tool', content: 'ok' })
  // The stored turn gives the same messages.
  await create({ previous_response_id: response.id, input: [output], tools })
  expect(asked()[2].messages.slice(1)).toEqual(asked()[1].messages.slice(1))
})

test('arguments of a custom tool that are not the expected JSON become its input', async () => {
  const { create, workers } = await openResponses()
  workers[0].script(CHAT, calls('t', '*** raw'))
  const { output } = await create({ input: 'hi', tools: [{ type: 'custom', name: 't' }] })
  expect(output[0]).toMatchObject({ type: 'custom_tool_call', input: '*** raw' })
})

test('functions of a namespace are offered with a prefixed name, and calls have both names', async () => {
  const { stream, create, asked, workers } = await openResponses()
  const long = 'n'.repeat(70)
  const tools = [
    {
      type: 'namespace',
      name: 'mcp__notes',
      tools: [
        { type: 'function', name: 'read', parameters: { type: 'object', properties: { id: {} } } },
        { type: 'function', name: long },
      ],
    },
  ]
  workers[0].script(CHAT, calls('mcp__notes__read', '{"id":1}'))
  const { response } = await stream({ input: 'hi', tools })
  const offered = asked()[0].tools.map((tool: ResponseJson) => tool.function.name)
  expect(offered[0]).toBe('mcp__notes__read')
  expect(offered[1]).toHaveLength(64)
  const [call] = response.output
  expect(call).toMatchObject({
    type: 'function_call',
    namespace: 'mcp__notes',
    name: 'read',
    arguments: '{"id":1}',
  })

  workers[0].script(CHAT, chatAnswer('done'))
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'x' }
  await create({ input: [{ role: 'user', content: 'hi' }, call, output], tools })
  expect(asked()[1].messages[1].tool_calls[0].function.name).toBe('mcp__notes__read')
})

test('a custom tool of a namespace keeps both names', async () => {
  const { create, asked, workers } = await openResponses()
  workers[0].script(CHAT, calls('fs__patch', '{"input":"x"}'))
  const tools = [{ type: 'namespace', name: 'fs', tools: [{ type: 'custom', name: 'patch' }] }]
  const { output } = await create({ input: 'hi', tools })
  expect(asked()[0].tools[0].function.name).toBe('fs__patch')
  expect(output[0]).toMatchObject({ type: 'custom_tool_call', namespace: 'fs', name: 'patch', input: 'x' })
})

test.each([
  [{ type: 'custom' }, 'tools[0].name'],
  [{ type: 'namespace', name: 'a', tools: 1 }, 'tools[0].tools'],
  [{ type: 'namespace', name: 'a', tools: [{ type: 'function' }] }, 'tools[0].tools[0].name'],
])('a tool declaration %j is rejected by field', async (tool, param) => {
  const { create } = await openResponses(chatAnswer('x'))
  expect((await create({ input: 'hi', tools: [tool] }, 400)).error.param).toBe(param)
})

test('input that ends in a compaction trigger returns one compaction item, which the next turn accepts', async () => {
  const { stream, create, asked, workers } = await openResponses(chatAnswer('THE SUMMARY'))
  const input = [
    { role: 'user', content: 'long' },
    { role: 'assistant', content: 'yes' },
    { type: 'compaction_trigger' },
  ]
  const { response } = await stream({ input, store: false })
  expect(response.output).toMatchObject([{ type: 'compaction', encrypted_content: expect.any(String) }])
  workers[0].script(CHAT, chatAnswer('ok'))
  await create({ input: [...response.output, { role: 'user', content: 'next' }] })
  expect(JSON.stringify(asked().at(-1).messages)).toContain('THE SUMMARY')
  expect(await create({ input: [{ type: 'compaction_trigger' }] }, 400)).toMatchObject({
    error: { param: 'input' },
  })
})

test('a turn with generate: false runs no model, and the next turn sees only its input', async () => {
  const { gateway, asked } = await openResponses(chatAnswer('real'))
  const { turn } = await connect(gateway.url)
  const first = check(await turn({ generate: false, store: false, input: 'be good' })).response
  expect([first.status, first.output]).toEqual(['completed', []])
  expect(asked()).toEqual([])
  check(await turn({ store: false, previous_response_id: first.id, input: 'hi' }))
  expect(asked()[0].messages).toEqual([{ role: 'user', content: 'be good\n\nhi' }])
})

test('a call id of any length is sent back to the worker unchanged', async () => {
  const id = `call_${'A'.repeat(200)}`
  const { create, asked, workers } = await openResponses()
  workers[0].script(CHAT, calls('f', '{}', id))
  const tools = [{ type: 'function', name: 'f' }]
  const { output } = await create({ input: 'hi', tools })
  workers[0].script(CHAT, chatAnswer('ok'))
  const result = { type: 'function_call_output', call_id: output[0].call_id, output: 'x' }
  await create({ input: [{ role: 'user', content: 'hi' }, ...output, result], tools })
  expect(asked()[1].messages.find(({ role }: Json) => role === 'tool').tool_call_id).toBe(id)
})

test('system messages are merged into one, at the start', async () => {
  const { create, asked } = await openResponses(chatAnswer('ok'))
  await create({
    instructions: 'You are',
    input: [
      { type: 'message', role: 'developer', content: 'skills' },
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'now' },
    ],
  })
  expect(asked()[0].messages).toEqual([
    { role: 'system', content: 'You are\n\nskills' },
    { role: 'user', content: 'hi\n\n<system>\nnow\n</system>' },
  ])
})

function calls(name: string, args: string, id = 'call_1') {
  return chatAnswer({ tool_calls: [{ id, name, arguments: args }] })
}

const SEARCH = {
  type: 'tool_search',
  execution: 'client',
  description: 'finds tools',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
}
const FOUND = {
  type: 'namespace',
  name: 'mcp__notes',
  description: 'notes',
  tools: [{ type: 'function', name: 'read', description: 'reads', parameters: { type: 'object' } }],
}

test('a client-side tool search becomes a function, and the tools it found can be called in later turns', async () => {
  const { stream, create, asked, workers } = await openResponses()
  workers[0].script(CHAT, calls('tool_search', '{"query":"notes"}'))
  const { response, types } = await stream({ input: 'hi', tools: [SEARCH] })
  expect(asked()[0].tools.map((tool: ResponseJson) => tool.function)).toMatchObject([
    { name: 'tool_search', description: 'finds tools', parameters: SEARCH.parameters },
  ])
  const [search] = response.output
  expect(search).toMatchObject({
    type: 'tool_search_call',
    execution: 'client',
    status: 'completed',
    arguments: { query: 'notes' },
  })
  expect(types).not.toContain('response.function_call_arguments.delta')

  workers[0].script(CHAT, calls('mcp__notes__read', '{"id":1}', 'call_2'))
  const found = {
    type: 'tool_search_output',
    execution: 'client',
    call_id: search.call_id,
    tools: [FOUND, FOUND],
  }
  const second = await create({ input: [{ role: 'user', content: 'hi' }, search, found], tools: [SEARCH] })
  expect(asked()[1].tools.map((tool: ResponseJson) => tool.function.name)).toEqual([
    'tool_search',
    'mcp__notes__read',
  ])
  const [, turn, result] = asked()[1].messages
  expect(turn.tool_calls[0].function).toEqual({ name: 'tool_search', arguments: '{"query":"notes"}' })
  expect(result.content).toContain('mcp__notes__read')
  const [call] = second.output
  expect(call).toMatchObject({ type: 'function_call', namespace: 'mcp__notes', name: 'read' })

  // The stored turns give the same tools.
  workers[0].script(CHAT, chatAnswer('done'))
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'x' }
  await create({ previous_response_id: second.id, input: [output], tools: [SEARCH] })
  expect(asked()[2].tools).toEqual(asked()[1].tools)
})

test('an unreadable search has no arguments, and a server-side search is not offered', async () => {
  const { create, asked } = await openResponses(calls('tool_search', 'notes'))
  const { output } = await create({ input: 'hi', tools: [SEARCH] })
  expect(output[0]).toMatchObject({ type: 'tool_search_call', arguments: {} })
  await create({ input: 'hi', tools: [{ type: 'tool_search' }] })
  expect(asked()[1].tools).toBeUndefined()
})

test('tools of an item are offered like those of the request, in this turn and later ones', async () => {
  const call = { id: 'call_1', name: 'functions__exec', arguments: '{"input":"ls"}' }
  const { create, asked } = await openResponses(chatAnswer({ tool_calls: [call] }))
  const namespace = {
    type: 'namespace',
    name: 'functions',
    tools: [
      { type: 'custom', name: 'exec', description: 'Runs code.' },
      { type: 'function', name: 'wait' },
    ],
  }
  const added = {
    type: 'additional_tools',
    role: 'developer',
    tools: [namespace, { type: 'function', name: 'plain' }],
  }
  const effort = { reasoning: { effort: 'max' } }
  const first = await create({
    input: [added, { role: 'user', content: 'hi' }],
    tool_choice: 'required',
    ...effort,
  })
  expect(first.tools).toEqual([])
  expect(first.output).toMatchObject([
    { type: 'custom_tool_call', namespace: 'functions', name: 'exec', input: 'ls' },
  ])
  const output = { type: 'custom_tool_call_output', call_id: 'call_1', output: 'a.txt' }
  await create({ previous_response_id: first.id, input: [output] })
  const offered = asked().map(({ tools }) => tools.map((tool: ResponseJson) => tool.function.name))
  expect(offered).toEqual([
    ['functions__exec', 'functions__wait', 'plain'],
    ['functions__exec', 'functions__wait', 'plain'],
  ])
  expect(asked()[0]).toMatchObject({ reasoning_effort: 'high', tool_choice: 'required' })
})

test('a file of text is text for chat workers; names to include that they do not know are reported', async () => {
  const { post, asked } = await openResponses(chatAnswer('x'))
  const file_data = `data:text/plain;base64,${Buffer.from('heron').toString('base64')}`
  const content = [{ type: 'input_file', filename: 'a.txt', file_data }]
  const reply = await post('/v1/responses', {
    model: 'test-model',
    input: [{ role: 'user', content }],
    include: ['brand.new'],
  })
  expect(reply.status).toBe(200)
  expect(asked()[0].messages[0].content).toEqual([{ type: 'text', text: 'a.txt:\nheron' }])
  expect(reply.headers.get('x-weir-warning')).toContain('include.brand.new')
})
