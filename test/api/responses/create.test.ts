/** Creating responses over chat workers: responses, worker requests and rejected requests. */
import { describe, expect, test } from 'vitest'
import { jsonAnswer, sseAnswer } from '../../support/scripted-worker.ts'
import { chatAnswer, type Json, openResponses, RESPONSES } from './responses-fleet.ts'

test('requests without an id get one that tells their route', async () => {
  const { post } = await openResponses(chatAnswer('hello'))
  const reply = await post(RESPONSES, { model: 'test-model', input: 'hi' })
  expect(reply.headers.get('x-request-id')).toMatch(/^resp-[A-Za-z0-9]{24}$/)
})

test('a text becomes a completed response with one message and usage', async () => {
  const usage = {
    prompt_tokens: 10,
    completion_tokens: 5,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 2 },
  }
  const { create, asked } = await openResponses(chatAnswer({ content: 'hello', usage }))
  const reply = await create({ input: 'hi' })
  expect(reply).toMatchObject({ object: 'response', status: 'completed', model: 'test-model', error: null })
  expect(reply.id).toMatch(/^resp_[0-9a-f]{32}$/)
  expect(Number.isInteger(reply.created_at) && reply.completed_at >= reply.created_at).toBe(true)
  expect(reply.output).toEqual([
    {
      id: expect.stringMatching(/^msg_/),
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'hello', annotations: [], logprobs: [] }],
    },
  ])
  expect(reply.usage).toEqual({
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 4 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 2 },
    total_tokens: 15,
  })
  expect(asked()).toEqual([{ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }])
})

test('every member has its default, and unknown members are ignored', async () => {
  const { create } = await openResponses(chatAnswer('x'))
  const reply = await create({ input: 'hi', some_new_field: { a: 1 }, client_metadata: { b: '2' } })
  expect(reply).toEqual({
    id: expect.any(String),
    object: 'response',
    created_at: expect.any(Number),
    completed_at: expect.any(Number),
    status: 'completed',
    error: null,
    incomplete_details: null,
    background: false,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    model: 'test-model',
    previous_response_id: null,
    parallel_tool_calls: true,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
    user: null,
    service_tier: 'default',
    safety_identifier: null,
    prompt_cache_key: null,
    metadata: {},
    output: expect.any(Array),
    usage: expect.any(Object),
  })
})

test('sampling fields reach the worker under their chat names, and are echoed', async () => {
  const { create, asked } = await openResponses(chatAnswer('x'))
  const fields = {
    stop: ['END'],
    top_k: 7,
    min_p: 0.1,
    repetition_penalty: 1.2,
    frequency_penalty: 0.5,
    presence_penalty: -0.5,
    user: 'u1',
    temperature: 0,
    top_p: 0.5,
  }
  const reply = await create({ input: 'hi', ...fields, max_output_tokens: 33 })
  expect(asked()[0]).toMatchObject({ ...fields, max_tokens: 33 })
  expect(reply).toMatchObject({ ...fields, max_output_tokens: 33 })
})

test('a truncated response is incomplete, and so is its last item', async () => {
  for (const [finish, reason] of [
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ] as const) {
    const { create } = await openResponses(chatAnswer({ content: 'cut', finish }))
    const reply = await create({ input: 'hi' })
    expect(reply).toMatchObject({ status: 'incomplete', incomplete_details: { reason }, completed_at: null })
    expect(reply.output.at(-1).status).toBe('incomplete')
  }
})

test('a JSON schema reaches the worker and is echoed', async () => {
  const { create, asked } = await openResponses(chatAnswer('{}'))
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const format = { type: 'json_schema', name: 'thing', schema, strict: true }
  const reply = await create({ input: 'hi', text: { format } })
  expect(asked()[0].response_format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'thing', schema, strict: true },
  })
  expect(reply.text.format).toMatchObject(format)
})

test('reasoning is the first item', async () => {
  const { create } = await openResponses(chatAnswer({ content: 'four', reasoning_content: 'two and two' }))
  const { output } = await create({ input: 'hi' })
  expect(output).toHaveLength(2)
  expect(output[0]).toEqual({
    id: expect.stringMatching(/^rs_/),
    type: 'reasoning',
    status: 'completed',
    summary: [],
    content: [{ type: 'reasoning_text', text: 'two and two' }],
  })
  expect(output[1].content[0].text).toBe('four')
})

test('reasoning is returned as a summary if requested', async () => {
  const { create, asked } = await openResponses(chatAnswer({ content: 'four', reasoning_content: 'hm' }))
  const reply = await create({ input: 'hi', reasoning: { effort: 'low', summary: 'auto' } })
  expect(reply.output[0].summary).toEqual([{ type: 'summary_text', text: 'hm' }])
  expect(reply.output[0].content).toBeUndefined()
  expect(reply.reasoning).toEqual({ effort: 'low', summary: 'auto' })
  expect(asked()[0].reasoning_effort).toBe('low')
})

test('encrypted reasoning can be sent back, and a modified one is dropped', async () => {
  const { create, asked } = await openResponses(
    chatAnswer({ content: 'four', reasoning_content: 'two and two' }),
  )
  const first = await create({ input: 'hi', store: false, include: ['reasoning.encrypted_content'] })
  const [reasoning] = first.output
  expect(reasoning.encrypted_content).toEqual(expect.any(String))
  const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }
  const output = { type: 'function_call_output', call_id: 'c1', output: 'x' }
  const { content: _, ...sealed } = reasoning
  await create({ store: false, input: [{ role: 'user', content: 'hi' }, sealed, call, output] })
  expect(asked()[1].messages[1]).toMatchObject({ role: 'assistant', reasoning_content: 'two and two' })
  const changed = { ...sealed, encrypted_content: `${sealed.encrypted_content.slice(0, -3)}AAA` }
  await create({ input: [{ role: 'user', content: 'hi' }, changed, call, output] })
  expect(asked()[2].messages[1].reasoning_content).toBeUndefined()
})

test('function calls are returned to the client, and the response is completed', async () => {
  const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }]
  const call = { id: 'call_1', name: 'get_weather', arguments: '{"city":"Bern"}' }
  const { create, asked } = await openResponses(chatAnswer({ tool_calls: [call] }))
  const reply = await create({ input: 'hi', tools, tool_choice: { type: 'function', name: 'get_weather' } })
  expect(reply.status).toBe('completed')
  expect(reply.output).toEqual([
    {
      id: expect.stringMatching(/^fc_/),
      type: 'function_call',
      status: 'completed',
      call_id: 'call_1',
      name: 'get_weather',
      arguments: '{"city":"Bern"}',
    },
  ])
  expect(reply.tools).toEqual([{ ...tools[0], description: null, strict: null }])
  expect(asked()[0]).toMatchObject({
    tools: [{ type: 'function', function: { name: 'get_weather' } }],
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
  })
})

test('tools that no plugin runs are echoed and not offered', async () => {
  const { create, asked } = await openResponses(chatAnswer('x'))
  const tools = [
    { type: 'web_search_preview', search_context_size: 'low' },
    { type: 'computer_use_preview' },
    { type: 'local_shell' },
    { type: 'namespace', name: 'n', tools: [] },
  ]
  const reply = await create({ input: 'hi', tools })
  expect(reply.tools).toEqual(tools)
  expect(asked()[0].tools).toBeUndefined()
})

test('log probabilities are returned if included', async () => {
  const logprobs = {
    content: [
      {
        token: 'x',
        logprob: -0.1,
        bytes: [120],
        top_logprobs: [{ token: 'x', logprob: -0.1, bytes: [120] }],
      },
    ],
  }
  const { create, asked, workers } = await openResponses()
  workers[0].script(
    'POST /v1/chat/completions',
    jsonAnswer({ choices: [{ index: 0, message: { content: 'x' }, logprobs, finish_reason: 'stop' }] }),
  )
  const include = ['message.output_text.logprobs']
  const reply = await create({ input: 'hi', include, top_logprobs: 1 })
  expect(reply.output[0].content[0].logprobs).toEqual(logprobs.content)
  expect(asked()[0]).toMatchObject({ logprobs: true, top_logprobs: 1 })
})

describe('rejected requests', () => {
  const message = (content: unknown) => ({ input: [{ role: 'user', content }] })
  const fn = { type: 'function', name: 'f' }
  const cases: readonly [Json, string, string | undefined][] = [
    [{ temperature: 2.1 }, 'invalid_value', 'temperature'],
    [{ temperature: -0.1 }, 'invalid_value', 'temperature'],
    [{ top_p: 1.01 }, 'invalid_value', 'top_p'],
    [{ temperature: '1' }, 'invalid_type', 'temperature'],
    [{ top_k: 0 }, 'invalid_value', 'top_k'],
    [{ max_tool_calls: 0 }, 'invalid_value', 'max_tool_calls'],
    [{ input: null }, 'missing_required_parameter', 'input'],
    [{ model: '' }, 'missing_required_parameter', 'model'],
    [{ input: '' }, 'input_text_empty', 'input'],
    [{ input: [] }, 'input_items_empty', 'input'],
    [{ include: [7] }, 'invalid_type', 'include[0]'],
    [{ reasoning: { effort: 7 } }, 'invalid_type', 'reasoning.effort'],
    [{ prompt: { id: 'p' } }, 'unsupported_parameter', 'prompt'],
    [{ text: { format: { type: 'json_schema', schema: {} } } }, 'json_schema_name_empty', 'text.format.name'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) },
      'invalid_metadata',
      'metadata',
    ],
    [{ input: [{ type: 'function_call_output', call_id: 'c9', output: '' }] }, 'orphan_tool_output', 'input'],
    [
      { input: [{ type: 'function_call', call_id: 'c9', name: 'f', arguments: '' }] },
      'missing_tool_output',
      'input',
    ],
    [{ input: [{ type: 'foo' }] }, 'unsupported_item_type', 'input[0].type'],
    [{ input: [{ type: '_hidden_call' }] }, 'invalid_value', 'input[0].type'],
    [{ input: [{ role: 'robot', content: 'x' }] }, 'invalid_value', 'input[0].role'],
    [message(''), 'message_content_empty', 'input[0].content'],
    [message([{ type: 'odd' }]), 'unsupported_content_part', 'input[0].content[0].type'],
    [message([{ type: 'input_image', file_id: 'f' }]), 'unsupported_file_id', 'input[0].content[0].file_id'],
    [{ input: [{ type: 'computer_call' }] }, 'unsupported_item_type', 'input[0].type'],
    [{ input: [{ type: 'reasoning', summary: [null] }] }, 'invalid_type', 'input[0].summary[0]'],
    [{ input: [{ type: 'reasoning', content: [null] }] }, 'invalid_type', 'input[0].content[0]'],
    [
      { input: [{ type: 'reasoning', summary: [{ type: 'summary_text' }] }] },
      'missing_required_parameter',
      'input[0].summary[0].text',
    ],
    [{ tools: [fn, fn] }, 'duplicate_tool_name', 'tools[1].name'],
    [{ tools: [{ type: 'mcp' }] }, 'missing_required_parameter', 'tools[0].server_label'],
    [
      {
        tools: [
          { type: 'mcp', server_label: 'a' },
          { type: 'mcp', server_label: 'A' },
        ],
      },
      'mcp_tool_duplicate_server_label',
      'tools[1].server_label',
    ],
    [{ tool_choice: 'required' }, 'tool_choice_requires_tools', 'tool_choice'],
    [
      { tools: [fn], tool_choice: { type: 'function', name: 'g' } },
      'tool_choice_function_not_found',
      'tool_choice',
    ],
    [{ tool_choice: 'maybe' }, 'tool_choice_invalid_mode', 'tool_choice'],
    [{ previous_response_id: 'resp_x', conversation: 'conv_x' }, 'mutually_exclusive_parameters', undefined],
    [{ conversation: 'abc' }, 'invalid_conversation_id', 'conversation'],
    [{ background: true, stream: true }, 'background_conflicts_with_stream', 'background'],
    [{ background: true, store: false }, 'background_requires_store', 'background'],
    [{ previous_response_id: 'resp_none' }, 'previous_response_not_found', 'previous_response_id'],
    [{ input: [{ type: 'item_reference', id: 'msg_none' }] }, 'item_not_found', 'input'],
  ]

  test('each is a 400 with a code and the field, streamed and non-streamed', async () => {
    const { post, workers } = await openResponses(chatAnswer('x'))
    for (const [fields, code, param] of cases) {
      for (const stream of fields.background === true ? [fields.stream] : [false, true]) {
        const reply = await post('/v1/responses', { model: 'test-model', input: 'hi', ...fields, stream })
        const body = (await reply.json()) as { error: Json }
        expect([reply.status, body.error.code, body.error.param]).toEqual([400, code, param])
        expect(body.error.type).toBe('invalid_request_error')
        expect(typeof body.error.message).toBe('string')
      }
    }
    expect(workers[0].requests).toEqual([])
  })

  test('malformed JSON is a 400', async () => {
    const { post } = await openResponses()
    const reply = await post('/v1/responses', '{"model":')
    expect([reply.status, ((await reply.json()) as { error: Json }).error.code]).toEqual([
      400,
      'json_parse_error',
    ])
  })

  test('an unknown model or conversation is a 404', async () => {
    const { create } = await openResponses()
    const unknown = await create({ model: 'nobody', input: 'hi' }, 404)
    expect(unknown.error).toMatchObject({ type: 'not_found_error', code: 'model_not_found' })
    const conversation = await create({ input: 'hi', conversation: 'conv_none' }, 404)
    expect(conversation.error).toMatchObject({ code: 'conversation_not_found', param: 'conversation' })
  })

  test('worker errors are mapped to status, type and code', async () => {
    const answers = [
      [
        400,
        "This model's maximum context length is 10 tokens",
        400,
        'invalid_request_error',
        'context_length_exceeded',
      ],
      [400, 'no', 400, 'invalid_request_error', 'upstream_invalid_request'],
      [418, 'no', 418, 'invalid_request_error', 'upstream_invalid_request'],
      [401, 'who are you', 500, 'internal_error', 'upstream_auth_error'],
      [429, 'slow', 429, 'rate_limit_error', 'rate_limit_exceeded'],
      [500, 'ouch', 500, 'internal_error', 'upstream_error'],
    ] as const
    for (const [given, words, status, type, code] of answers) {
      const { create } = await openResponses(jsonAnswer({ error: { message: words } }, { status: given }), {
        kernel: { retry: { maxAttempts: 1 } },
      })
      expect((await create({ input: 'hi' }, status)).error).toMatchObject({ type, code })
    }
  })
})

test('ignored members are listed in a header; chat workers get the members that chat supports', async () => {
  const fleet = await openResponses(chatAnswer('x'))
  const body = { model: 'test-model', input: 'x', text: { verbosity: 'low' }, safety_identifier: 'u1' }
  const reply = await fleet.post(RESPONSES, { ...body, seed: 1, 'not a token': 2 })
  expect(reply.status).toBe(200)
  expect(reply.headers.get('x-weir-warning')).toBe('members_ignored; count=2; names="seed"')
  expect(fleet.asked()[0]).toMatchObject({ verbosity: 'low', safety_identifier: 'u1' })
  expect((await fleet.post(RESPONSES, body)).headers.get('x-weir-warning')).toBeNull()
})

test.each([false, true])(
  'the service tier of a chat worker is that of the response (stream: %j)',
  async (stream) => {
    const chunk = { id: 'c', model: 'm', service_tier: 'flex' }
    const said = { role: 'assistant', content: 'hi' }
    const end = { index: 0, finish_reason: 'stop' }
    const {
      create,
      stream: read,
      asked,
    } = await openResponses(
      stream
        ? sseAnswer([JSON.stringify({ ...chunk, choices: [{ ...end, delta: said }] }), '[DONE]'])
        : jsonAnswer({ ...chunk, choices: [{ ...end, message: said }] }),
    )
    const body = { input: 'hi', service_tier: 'auto' }
    const reply = stream ? (await read(body)).response : await create(body)
    expect([reply.service_tier, asked()[0].service_tier]).toEqual(['flex', 'auto'])
  },
)
