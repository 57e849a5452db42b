/** Responses over workers with the Responses format: they get it natively, without state of the gateway. */
import { expect, test } from 'vitest'
import { NATIVE, nativeAnswer, text } from '../../support/responses-script.ts'
import { jsonAnswer, sseAnswer } from '../../support/scripted-worker.ts'
import {
  CHAT,
  chatAnswer,
  type Json,
  openResponses,
  RESPONSES,
  type ResponseJson,
} from './responses-fleet.ts'

const engine = {}
const NATIVE_WORKER = { spec: { apis: ['responses'] } }

async function openNative(said: Parameters<typeof nativeAnswer>[0], config: Json = {}) {
  const fleet = await openResponses(undefined, {
    workers: [NATIVE_WORKER],
    plugins: { generations: config },
  })
  fleet.workers[0].script(NATIVE, nativeAnswer(said))
  const asked = () => fleet.workers[0].requestsTo(NATIVE).map((request) => request.json() as ResponseJson)
  return { ...fleet, asked }
}

test('the worker gets no state and store false; the response is built by the gateway', async () => {
  const fleet = await openNative('hello')
  const body = {
    input: 'hi',
    instructions: 'be short',
    metadata: { a: 'b' },
    store: true,
    temperature: 0.5,
    max_tool_calls: 3,
    brand_new_member: 1,
    tools: [{ type: 'function', name: 'f' }],
  }
  const reply = await fleet.create(body)
  expect(reply).toMatchObject({
    model: 'test-model',
    status: 'completed',
    store: true,
    metadata: { a: 'b' },
    instructions: 'be short',
    tools: [{ type: 'function', name: 'f', description: null, parameters: null, strict: null }],
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 15,
    },
  })
  expect(reply.id).not.toBe('resp_up')
  expect(reply.output[0].id).toMatch(/^msg_/)
  expect(reply.output[0].id).not.toBe('msg_up')
  const [asked] = fleet.asked()
  expect(asked).toEqual({
    model: 'test-model',
    max_tool_calls: 3,
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
    instructions: 'be short',
    temperature: 0.5,
    brand_new_member: 1,
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
    store: false,
    stream: false,
  })
  const stored = await fleet.fetchJson('GET', `${RESPONSES}/${reply.id}`)
  expect(stored).toEqual(reply)
})

test('a chain is sent completely, without previous_response_id', async () => {
  const fleet = await openNative({
    output: [
      {
        id: 'fc_up',
        type: 'function_call',
        status: 'completed',
        call_id: 'call_1',
        name: 'f',
        arguments: '{"x":1}',
      },
    ],
  })
  const first = await fleet.create({ input: 'one', tools: [{ type: 'function', name: 'f' }] })
  expect(first.output).toMatchObject([{ type: 'function_call', call_id: 'call_1', arguments: '{"x":1}' }])
  fleet.workers[0].script(NATIVE, nativeAnswer('two'))
  const output = [
    { type: 'input_text', text: 'seen' },
    { type: 'input_image', image_url: 'data:image/png;base64,AA' },
  ]
  const second = await fleet.create({
    previous_response_id: first.id,
    input: [{ type: 'function_call_output', call_id: 'call_1', output }],
  })
  expect(second).toMatchObject({ status: 'completed', previous_response_id: first.id })
  const asked = fleet.asked().at(-1)
  expect(asked.previous_response_id).toBe(undefined)
  expect(asked.input).toEqual([
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'one' }] },
    { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"x":1}' },
    {
      type: 'function_call_output',
      call_id: 'call_1',
      output,
    },
  ])
})

test("a stream has the gateway's own events, ids and numbers, and is stored", async () => {
  const fleet = await openNative({
    output: [
      { id: 'rs_up', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
      text('hello my friend'),
      {
        id: 'fc_up',
        type: 'function_call',
        status: 'completed',
        call_id: 'call_1',
        name: 'f',
        arguments: '{"x":12345}',
      },
    ],
  })
  const {
    response,
    types,
    text: said,
    events,
  } = await fleet.stream({
    input: 'hi',
    tools: [{ type: 'function', name: 'f' }],
  })
  expect(said).toBe('hello my friend')
  expect(types.filter((type) => type === 'response.output_text.delta').length).toBeGreaterThan(2)
  expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call'])
  expect(JSON.stringify(events)).not.toContain('_up')
  // From the second delta of a part on, the worker’s own text with the numbers, ids and places of the gateway.
  const deltas = events.filter(({ type }) => /_text\.delta|arguments\.delta/.test(String(type)))
  const [, second] = deltas.filter(({ type }) => type === 'response.output_text.delta')
  expect(Object.keys(second)).toEqual([
    'type',
    'sequence_number',
    'item_id',
    'output_index',
    'content_index',
    'delta',
    'logprobs',
    'obfuscation',
  ])
  expect(deltas.slice(1).every(({ obfuscation }) => obfuscation === 'xx')).toBe(true)
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, number) => number))
  expect(fleet.asked()[0]).toMatchObject({ stream: true, stream_options: { include_obfuscation: false } })
  const stored = await fleet.fetchJson('GET', `${RESPONSES}/${response.id}`)
  expect(stored).toEqual(response)
})

const custom = {
  id: 'ctc_up',
  type: 'custom_tool_call',
  status: 'completed',
  call_id: 'call_9',
  name: 'patch',
  input: '*** x',
}

test('items and tools that only the worker knows pass through, with ids of the gateway', async () => {
  const search = {
    id: 'ws_up',
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'q' },
  }
  const fleet = await openNative({ output: [search, custom] })
  const tools = [
    { type: 'custom', name: 'patch', format: { type: 'text' } },
    { type: 'web_search', search_context_size: 'low' },
    { type: 'function', name: 'f', parameters: { type: 'object' }, strict: true },
  ]
  const body = { input: 'hi', tools, tool_choice: { type: 'custom', name: 'patch' } }
  const first = await fleet.create(body)
  const { id: searchId, ...searched } = first.output[0]
  expect(searched).toEqual({ type: 'web_search_call', status: 'completed', action: search.action })
  expect(searchId).toMatch(/^ws_/)
  expect(searchId).not.toBe('ws_up')
  expect(first.output[1]).toEqual({ ...custom, id: expect.stringMatching(/^ctc_[0-9a-f]{32}$/) })
  expect(fleet.asked()[0]).toMatchObject({
    tools: [{ type: 'function', name: 'f', strict: true }, tools[0], tools[1]],
    tool_choice: { type: 'custom', name: 'patch' },
  })
  expect((await fleet.stream(body)).types).toContain('response.custom_tool_call_input.done')
  const { _workerId, ...shown } = (await fleet.fetchJson('GET', `${RESPONSES}/${first.id}`)).output[1]
  expect([_workerId, shown]).toEqual([undefined, first.output[1]])
  fleet.workers[0].script(NATIVE, nativeAnswer('done'))
  const answer = { type: 'custom_tool_call_output', call_id: 'call_9', output: 'ok' }
  await fleet.create({ previous_response_id: first.id, input: [answer] })
  // The worker gets its own ids back, and none of the gateway.
  expect(fleet.asked().at(-1).input.slice(1)).toEqual(
    [search, { ...custom, status: undefined }, answer].map(unstated),
  )
})

const shell = { type: 'local_shell_call', call_id: 'call_9', action: { type: 'exec', command: ['ls'] } }

const unstated = ({ status: _, ...item }: Json) => item

test('tool types that the workers do not run are not offered, but echoed', async () => {
  const fleet = await openNative('hi', { toolTypes: ['custom'] })
  const tools = [{ type: 'local_shell' }, { type: 'custom', name: 'c' }]
  const reply = await fleet.create({ input: 'hi', tools })
  expect(reply.tools).toEqual(tools)
  expect(fleet.asked()[0].tools).toEqual([tools[1]])
})

test('items that only Responses workers know are rejected if none serves the model', async () => {
  const fleet = await openResponses(chatAnswer('x'), { plugins: engine })
  const reply = await fleet.create({ input: [shell] }, 400)
  expect(reply.error).toMatchObject({ code: 'unsupported_item_type', param: 'input[0].type' })
  expect(fleet.workers[0].requestsTo(CHAT)).toEqual([])
})

test('with both kinds of workers, Responses workers get the items that only they know', async () => {
  const fleet = await openResponses(chatAnswer('chat'), { workers: [{}, NATIVE_WORKER], plugins: engine })
  fleet.workers[1].script(NATIVE, nativeAnswer('native'))
  const answer = { type: 'local_shell_call_output', call_id: 'call_9', output: 'ok' }
  for (let count = 0; count < 6; count += 1) {
    const { output } = await fleet.create({ input: [shell, answer] })
    expect(output[0].content[0].text).toBe('native')
  }
  expect(fleet.workers[0].requestsTo(CHAT)).toEqual([])
})

test("a worker with both formats gets the client's format", async () => {
  const fleet = await openResponses(chatAnswer('chat'), {
    workers: [{ spec: { apis: ['chat', 'responses'] } }],
    plugins: engine,
  })
  fleet.workers[0].script(NATIVE, nativeAnswer('native'))
  expect((await fleet.create({ input: 'hi' })).output[0].content[0].text).toBe('native')
  const chat = await fleet.post('/v1/chat/completions', {
    model: 'test-model',
    messages: [{ role: 'user', content: 'hi' }],
  })
  expect(((await chat.json()) as ResponseJson).choices[0].message.content).toBe('chat')
})

test('chat over Responses workers, non-streamed and streamed', async () => {
  const call = {
    id: 'fc_up',
    type: 'function_call',
    status: 'completed',
    call_id: 'call_1',
    name: 'f',
    arguments: '{}',
  }
  const fleet = await openNative({ output: [text('hello'), call] })
  const body = {
    model: 'test-model',
    messages: [
      { role: 'system', content: 'be short' },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'ok' },
    ],
    tools: [{ type: 'function', function: { name: 'f' } }],
    max_tokens: 9,
  }
  const reply = (await (await fleet.post('/v1/chat/completions', body)).json()) as ResponseJson
  expect(reply.choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { content: 'hello', tool_calls: [{ id: 'call_1', function: { name: 'f', arguments: '{}' } }] },
  })
  expect(fleet.asked()[0]).toEqual({
    model: 'test-model',
    max_output_tokens: 9,
    store: false,
    stream: false,
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: false }],
    input: [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'be short' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'ok' },
    ],
  })
  const streamed = await (await fleet.post('/v1/chat/completions', { ...body, stream: true })).text()
  expect(streamed).toContain('"finish_reason":"tool_calls"')
  expect(streamed.trimEnd().endsWith('data: [DONE]')).toBe(true)
})

test('sealed reasoning is sent back to its worker, and never exposed in the clear', async () => {
  const output = [
    {
      id: 'rs_up',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'hm' }],
      encrypted_content: 'SEALED',
    },
    {
      id: 'fc_up',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_1',
      name: 'f',
      arguments: '{}',
    },
  ]
  const fleet = await openNative({ output })
  const include = ['reasoning.encrypted_content']
  const reply = await fleet.create({
    input: 'hi',
    store: false,
    include,
    tools: [{ type: 'function', name: 'f' }],
  })
  expect(fleet.asked()[0].include).toEqual(include)
  expect(reply.output[0].encrypted_content).toEqual(expect.any(String))
  expect(JSON.stringify(reply)).not.toContain('SEALED')
  fleet.workers[0].script(NATIVE, nativeAnswer('ok'))
  const input = [
    { role: 'user', content: 'hi' },
    ...reply.output,
    { type: 'function_call_output', call_id: 'call_1', output: 'x' },
  ]
  await fleet.create({ input, store: false })
  expect(fleet.asked().at(-1).input[1]).toMatchObject({ type: 'reasoning', encrypted_content: 'SEALED' })
})

test('errors and failures of a Responses worker are mapped', async () => {
  const fleet = await openNative('x')
  const worker = fleet.workers[0]
  const error = (message: string, code: string) => ({
    error: { message, code, type: 'x', param: 'temperature' },
  })
  const refuse = (status: number, body: object) => worker.script(NATIVE, jsonAnswer(body, { status }))
  refuse(400, error('no such thing', 'bad'))
  expect((await fleet.create({ input: 'hi' }, 400)).error).toMatchObject({ type: 'invalid_request_error' })
  refuse(401, error('key', 'invalid_api_key'))
  expect((await fleet.create({ input: 'hi' }, 500)).error).toMatchObject({ code: 'upstream_auth_error' })
  worker.script(
    NATIVE,
    nativeAnswer({
      output: [],
      status: 'failed',
      more: { error: { code: 'server_error', message: 'boom' } },
    }),
  )
  expect((await fleet.create({ input: 'hi' }, 500)).error.type).toBe('internal_error')
  worker.script(
    NATIVE,
    nativeAnswer({
      output: [text('cut')],
      status: 'incomplete',
      more: { incomplete_details: { reason: 'max_output_tokens' } },
    }),
  )
  expect(await fleet.create({ input: 'hi' })).toMatchObject({
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output: [{ status: 'incomplete' }],
  })
  const broken = [
    { type: 'response.created', response: { id: 'r', model: 'm', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...text(''), content: [] } },
    { type: 'response.output_text.delta', output_index: 0, delta: 'half' },
  ].map((event) => JSON.stringify(event))
  worker.script(NATIVE, sseAnswer(broken))
  const { response, types } = await fleet.stream({ input: 'hi' })
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
  expect(response.output).toMatchObject([{ status: 'incomplete', content: [{ text: 'half' }] }])
  const stored = await fleet.fetchJson('GET', `${RESPONSES}/${response.id}`)
  expect(stored.status).toBe('failed')
})

test('a background response over a Responses worker runs, is streamed, and is cancelled', async () => {
  const fleet = await openNative('later')
  const queued = await fleet.create({ input: 'hi', background: true })
  expect(queued.status).toBe('queued')
  const reply = await ended(fleet, queued.id)
  expect(reply).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'later' }] }] })
  expect(fleet.asked()[0].background).toBe(undefined)
  fleet.workers[0].script(NATIVE, () => new Promise(() => {}))
  const stuck = await fleet.create({ input: 'hi', background: true })
  const request = await fleet.workers[0].received(NATIVE, 2)
  const cancelled = await fleet.fetchJson('POST', `${RESPONSES}/${stuck.id}/cancel`)
  expect(cancelled.status).toBe('cancelled')
  await request.closed
  expect(request.isAborted).toBe(true)
})

async function ended(
  fleet: { fetchJson(method: string, path: string): Promise<ResponseJson> },
  id: string,
): Promise<ResponseJson> {
  for (;;) {
    const reply = await fleet.fetchJson('GET', `${RESPONSES}/${id}`)
    if (reply.status !== 'queued' && reply.status !== 'in_progress') return reply
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test("the namespace of a worker's function call is returned to the client, also for tools found by a search", async () => {
  const call = { id: 'fc_up', type: 'function_call', status: 'completed', call_id: 'call_1' }
  const { create, asked } = await openNative({
    output: [{ ...call, namespace: 'mcp__notes', name: 'read', arguments: '{}' }],
  })
  const namespace = { type: 'namespace', name: 'mcp__notes', tools: [{ type: 'function', name: 'read' }] }
  const expected = [{ type: 'function_call', namespace: 'mcp__notes', name: 'read', arguments: '{}' }]
  const first = await create({ input: 'hi', tools: [namespace] })
  expect(first.output).toMatchObject(expected)
  const search = {
    type: 'tool_search_call',
    call_id: 'call_s',
    execution: 'client',
    arguments: { query: 'x' },
  }
  const found = { type: 'tool_search_output', call_id: 'call_s', execution: 'client', tools: [namespace] }
  const tools = [{ type: 'tool_search', execution: 'client', parameters: { type: 'object' } }]
  const input = [{ role: 'user', content: 'hi' }, search, found]
  expect((await create({ input, tools })).output).toMatchObject(expected)
  expect(asked()[1].tools).toEqual(tools)
  expect(asked()[1].input.slice(1)).toMatchObject([search, found])
})

const ADDITIONAL = {
  type: 'additional_tools',
  role: 'developer',
  tools: [
    {
      type: 'namespace',
      name: 'functions',
      tools: [
        { type: 'custom', name: 'exec', description: 'Runs code.' },
        { type: 'function', name: 'wait', parameters: { type: 'object' } },
      ],
    },
    { type: 'function', name: 'plain' },
  ],
}

test('items, parts, members and values that the gateway does not know reach the worker unchanged, and are stored', async () => {
  const fleet = await openNative('one')
  const input = [
    ADDITIONAL,
    { type: 'program', call_id: 'c', code: 'x', fingerprint: 'f', status: 'completed' },
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } },
        { type: 'input_image', file_id: 'file_1', detail: 'high' },
        { type: 'input_file', file_url: 'https://example.com/a.pdf' },
        { type: 'input_hologram', data: 'x' },
      ],
    },
    { type: 'web_search_call', action: { type: 'search', query: 'q' }, brand_new: 1 },
  ]
  const body = { input, reasoning: { effort: 'max', context: 'all_turns' }, service_tier: 'brand-new' }
  const first = await fleet.create(body)
  expect(fleet.asked()[0]).toMatchObject(body)
  expect(fleet.asked()[0].tools).toBeUndefined()
  await fleet.create({ input: 'go on', previous_response_id: first.id })
  expect(fleet.asked()[1].input.slice(0, input.length)).toEqual(fleet.asked()[0].input)
  const stored = await fleet.fetchJson('GET', `${RESPONSES}/${first.id}/input_items?order=asc`)
  expect(stored.data).toMatchObject(input)
})

test('declarations of tools reach the worker unchanged, and its response keeps what it states', async () => {
  const more = { service_tier: 'flex', brand_new: { a: 1 }, id: 'resp_up', store: false, tools: [] }
  const fleet = await openNative({ output: [text('hi')], more })
  const declared = { name: 'f', allowed_callers: ['programmatic'], output_schema: { type: 'object' } }
  const tools = [{ type: 'function', ...declared, parameters: { type: 'object' } }]
  const body = { input: 'hi', tools, service_tier: 'auto', include: ['brand.new'], prompt: { id: 'pmpt_1' } }
  const whole = await fleet.create(body)
  const { response } = await fleet.stream(body)
  for (const asked of fleet.asked()) {
    expect(asked).toMatchObject({ tools, include: body.include, prompt: body.prompt })
    expect(asked.tools[0]).toEqual(tools[0])
  }
  const stored = await fleet.fetchJson('GET', `${RESPONSES}/${whole.id}`)
  for (const reply of [whole, response, stored])
    expect(reply).toMatchObject({ service_tier: 'flex', brand_new: { a: 1 }, store: true, tools })
  expect(whole.id).not.toBe('resp_up')
})

test('context management beside compaction reaches the worker', async () => {
  const fleet = await openNative('hi')
  const cleared = { type: 'brand_new', compact_threshold: 1, keep: 2 }
  await fleet.create({
    input: 'hi',
    context_management: [{ type: 'compaction', compact_threshold: 9_000 }, cleared],
  })
  await fleet.create({ input: 'hi', context_management: [{ type: 'compaction', compact_threshold: 9_000 }] })
  expect(fleet.asked().map(({ context_management }) => context_management)).toEqual([[cleared], undefined])
})
