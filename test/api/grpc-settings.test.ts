/** Requests to gRPC engines: sampling parameters, constraints, tools and unsupported parameters. */
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import type { EngineName } from '../support/scripted-engine.ts'
import { type EngineSpec, shareGrpcFleets, withEveryEngine } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const TOOLS = ['weather', 'time'].map((name) => ({
  type: 'function' as const,
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}))

type Fields = Record<string, unknown>

const openShared = shareGrpcFleets()
const openEngine = withEveryEngine(openShared)

/** The engine request for a body; null if the engine was not called. */
async function asker(runtime: EngineName, engine?: EngineSpec) {
  const fleet = await (engine === undefined
    ? openEngine(runtime)
    : openShared({ engines: [{ runtime, ...engine }] }))
  fleet.engine.answer([[5]])
  return {
    ...fleet,
    async sent(body: Fields, path = CHAT) {
      fleet.engine.calls.length = 0
      const reply = await fleet.post(
        path,
        path === CHAT ? { ...ask, ...body } : { model: 'test-model', ...body },
      )
      const { request } = fleet.engine.calls[0] ?? {}
      const sampling = (request?.samplingParams ?? request?.samplingConfig) as Fields | undefined
      return { status: reply.status, request: request ?? null, sampling: sampling ?? {}, reply }
    },
  }
}

test('sglang receives all sampling parameters, default values included', async () => {
  const { sent } = await asker('sglang')
  expect((await sent({})).sampling).toMatchObject({
    temperature: 1,
    topP: 1,
    topK: -1,
    repetitionPenalty: 1,
    minP: 0,
  })
  expect((await sent({ top_k: -1 })).sampling.topK).toBe(-1)
})

test('vllm receives no unset temperature; 0 is sent, and top_k -1 becomes 0', async () => {
  const { sent } = await asker('vllm')
  expect((await sent({})).sampling.temperature).toBeUndefined()
  expect((await sent({ temperature: 0, top_k: -1 })).sampling).toMatchObject({ temperature: 0, topK: 0 })
})

test('tokenspeed receives all seven sampling parameters and logprobStartLen', async () => {
  const { sent } = await asker('tokenspeed')
  const { sampling, request } = await sent({})
  const all = {
    temperature: 1,
    topP: 1,
    topK: -1,
    minP: 0,
    frequencyPenalty: 0,
    presencePenalty: 0,
    repetitionPenalty: 1,
  }
  expect(sampling).toMatchObject(all)
  expect(request).toMatchObject({ logprobStartLen: -1 })
  const asked = { text: 'x', return_logprob: true, logprob_start_len: 0 }
  expect((await sent(asked, '/generate')).request).toMatchObject({ logprobStartLen: 0 })
})

test('trtllm always receives maxTokens and excludes the prompt from the output', async () => {
  const { sent } = await asker('trtllm')
  const chat = (await sent({})).request
  const outputConfig = { excludeInputFromOutput: true }
  expect(chat).toMatchObject({ maxTokens: 2_048, outputConfig })
  const completion = (await sent({ prompt: 'x' }, '/v1/completions')).request
  expect(completion).toMatchObject({ maxTokens: 16, outputConfig })
  expect((await sent({ max_tokens: 7 })).request).toMatchObject({ maxTokens: 7, outputConfig })
})

test('unsupported parameters are rejected before mlx is called', async () => {
  const { sent } = await asker('mlx')
  const schema = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
  for (const body of [{ min_tokens: 2 }, { n: 2 }, { response_format: schema }]) {
    const { status, request, reply } = await sent(body)
    expect([status, request]).toEqual([400, null])
    expect(await reply.json()).toMatchObject({ error: { code: 'engine_lacks_parameter' } })
  }
})

test.each(['sglang', 'vllm', 'mlx', 'tokenspeed', 'trtllm'] as const)(
  'limits, seeds, stop tokens and logit biases reach %s if it has a field for them',
  async (runtime) => {
    const { sent } = await asker(runtime)
    const limits = await sent({
      max_tokens: 5,
      max_completion_tokens: 9,
      seed: 2 ** 40,
      ignore_eos: true,
      stop_token_ids: [3, 4],
    })
    const { sampling } = limits
    const request = limits.request as Fields
    const limitOf = (given: { sampling: Fields; request: Fields | null }) =>
      given.sampling.maxNewTokens ?? given.sampling.maxTokens ?? given.request?.maxTokens
    expect(limitOf(limits)).toBe(9)
    expect(limitOf(await sent({ max_tokens: 5 }))).toBe(5)
    expect([sampling.ignoreEos ?? request.ignoreEos, sampling.stopTokenIds ?? request.stopTokenIds]).toEqual([
      true,
      [3, 4],
    ])
    if (runtime === 'vllm' || runtime === 'mlx') expect(sampling.seed).toBe(2_147_483_647)
    if (runtime === 'trtllm') expect(sampling.seed).toBe(2n ** 40n)
    if (runtime === 'tokenspeed') expect(sampling.samplingSeed).toBe(2n ** 40n)
    const bias = await sent({ logit_bias: { '7': 1.5 } })
    // Its only field requires a value for every vocabulary entry.
    if (runtime === 'trtllm') expect([bias.status, bias.request]).toEqual([400, null])
    else {
      const given = [...(bias.sampling.logitBias as Map<string | number, number>)]
      expect(given.map(([id, value]) => [Number(id), value])).toEqual([[7, 1.5]])
    }
    const least = await sent({ min_tokens: 2 })
    if (runtime === 'mlx') expect(least.status).toBe(400)
    else expect(least.sampling.minNewTokens ?? least.sampling.minTokens).toBe(2)
  },
)

test('valid defaults of the engine apply to parameters that the client omits', async () => {
  const defaults = JSON.stringify({ temperature: 0.7, top_p: 0.9, top_k: null, other: 1 })
  const { sent } = await asker('sglang', { modelInfo: { defaultSamplingParamsJson: defaults } })
  const { sampling } = await sent({ temperature: 0 })
  expect(sampling).toMatchObject({ temperature: 0, topK: -1 })
  expect(sampling.topP).toBeCloseTo(0.9)
  for (const text of ['{', '[]', '"x"', 'null', '{"temperature":"hot","top_k":[1]}']) {
    const broken = await asker('sglang', { modelInfo: { defaultSamplingParamsJson: text } })
    expect((await broken.sent({})).sampling).toMatchObject({ temperature: 1, topK: -1 })
  }
})

test('response formats are sent in the fields of each engine', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const format = { type: 'json_schema', json_schema: { name: 'a', schema } }
  for (const runtime of ['sglang', 'vllm', 'tokenspeed'] as const) {
    const { sent } = await asker(runtime)
    expect((await sent({ response_format: format })).sampling.jsonSchema).toBe(JSON.stringify(schema))
    expect((await sent({ response_format: { type: 'json_object' } })).sampling.jsonSchema).toBe(
      '{"type":"object"}',
    )
    expect((await sent({ regex: 'a+' })).sampling.regex).toBe('a+')
    const { sampling } = await sent({ ebnf: 'root ::= "a"' })
    expect(sampling.ebnfGrammar ?? sampling.grammar).toBe('root ::= "a"')
    expect((await sent({ response_format: { type: 'text' } })).sampling.jsonSchema).toBeUndefined()
  }
  const { sent } = await asker('trtllm')
  for (const [body, guideType, guide] of [
    [{ response_format: format }, 2, JSON.stringify(schema)],
    [{ response_format: { type: 'json_object' } }, 2, '{"type":"object"}'],
    [{ regex: 'a+' }, 3, 'a+'],
    [{ ebnf: 'root ::= "a"' }, 4, 'root ::= "a"'],
  ] as const)
    expect((await sent(body)).request).toMatchObject({ guidedDecoding: { guideType, guide } })
  expect((await sent({})).request?.guidedDecoding).toBeUndefined()
})

test.each(['sglang', 'vllm', 'trtllm', 'mlx', 'tokenspeed'] as const)(
  'two constraints in one request are rejected before %s is called',
  async (runtime) => {
    const { sent } = await asker(runtime)
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
    const named = { type: 'function', function: { name: 'time' } }
    for (const body of [
      { response_format: format, regex: 'a+' },
      { response_format: format, ebnf: 'root ::= "a"' },
      { regex: 'a+', ebnf: 'root ::= "a"' },
      { response_format: format, tools: TOOLS, tool_choice: 'required' },
      { response_format: format, tools: TOOLS, tool_choice: named },
      { regex: 'a+', tools: TOOLS, tool_choice: 'required' },
    ]) {
      const { status, request } = await sent(body)
      expect([body, status, request]).toEqual([body, 400, null])
    }
  },
)

test('vllm, trtllm and tokenspeed receive stop strings', async () => {
  for (const runtime of ['vllm', 'trtllm', 'tokenspeed'] as const) {
    const { sent } = await asker(runtime)
    const { sampling, request } = await sent({ stop: ['one two', 'b'] })
    expect(sampling.stop ?? (request as Fields).stop).toEqual(['one two', 'b'])
  }
})

test('tool_choice required and named constrain the output, auto does not; output of a named call becomes its arguments', async () => {
  const { sent, engine, ids } = await asker('sglang')
  const constraintOf = ({ sampling }: { sampling: Fields }) =>
    sampling.jsonSchema ?? sampling.structuralTag ?? null
  expect(constraintOf(await sent({ tools: TOOLS, tool_choice: 'auto' }))).toBeNull()
  expect(constraintOf(await sent({ tools: TOOLS, tool_choice: 'required' }))).not.toBeNull()
  expect(constraintOf(await sent({ tools: TOOLS, tool_choice: 'none' }))).toBeNull()
  engine.answer([await ids('{"city":"Rome"}')])
  const named = await sent({ tools: TOOLS, tool_choice: { type: 'function', function: { name: 'time' } } })
  expect(JSON.parse(String(named.sampling.jsonSchema))).toEqual(TOOLS[1].function.parameters)
  const { choices } = (await named.reply.json()) as { choices: { finish_reason: string; message: Fields }[] }
  expect(choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { content: null, tool_calls: [{ function: { name: 'time', arguments: '{"city":"Rome"}' } }] },
  })
})

test('the OpenAI client reads parallel tools, reasoning, n, a schema and log probabilities, streamed and non-streamed', async () => {
  const { gateway, engine, ids } = await openShared({
    engines: [{ serverInfo: { serverArgs: { tool_call_parser: 'qwen', reasoning_parser: 'qwen3' } } }],
  })
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const call = (name: string) =>
    `<tool_call>\n{"name": "${name}", "arguments": {"city": "Rome"}}\n</tool_call>`
  const text = `<think>let me see</think>${call('weather')}\n${call('time')}`
  engine.answer((await ids(text)).map((id) => [id]))
  const messages = [{ role: 'user' as const, content: 'hi' }]
  const tools = TOOLS
  const whole = await client.chat.completions.create({ model: 'test-model', messages, tools })
  const message = whole.choices[0].message as OpenAI.ChatCompletionMessage & { reasoning_content?: string }
  const named = (calls: readonly { readonly function?: { readonly name?: string } }[] | undefined) =>
    (calls ?? []).map((one) => one.function?.name)
  expect(named(message.tool_calls as never)).toEqual(['weather', 'time'])
  expect([message.reasoning_content, whole.choices[0].finish_reason]).toEqual(['let me see', 'tool_calls'])
  const stream = client.chat.completions.stream({ model: 'test-model', messages, tools })
  const final = await stream.finalChatCompletion()
  expect(named(final.choices[0].message.tool_calls as never)).toEqual(['weather', 'time'])

  const [a, b] = [await ids('{"a":1}'), await ids('{"a":2}')]
  engine.script = ({ request }) => [...engine.steps([a], {}, request), ...engine.steps([b], {}, request)]
  const two = await client.chat.completions.create({
    model: 'test-model',
    messages,
    n: 2,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
  })
  expect(two.choices.map((choice) => choice.message.content)).toEqual(['{"a":1}', '{"a":2}'])
})

test.each([
  [
    'the parsers that the engine reports',
    { serverInfo: { serverArgs: { tool_call_parser: 'qwen25', reasoning_parser: 'qwen3-thinking' } } },
  ],
  [
    'the parsers of the model card, before those of the engine,',
    {
      serverInfo: { serverArgs: { tool_call_parser: 'mistral' } },
      spec: { models: [{ id: 'test-model', tool_parser: 'hermes', reasoning_parser: 'qwen3-thinking' }] },
    },
  ],
] as const)('%s select the output parsers', async (_, engine) => {
  const { sent, engine: player, ids } = await asker('sglang', engine)
  player.answer([
    await ids('so be it</think><tool_call>\n{"name":"time","arguments":{"city":"Rome"}}\n</tool_call>'),
  ])
  const { status, reply } = await sent({ tools: TOOLS })
  expect(status).toBe(200)
  expect(await reply.json()).toMatchObject({
    choices: [{ message: { reasoning_content: 'so be it', tool_calls: [{ function: { name: 'time' } }] } }],
  })
})

test('an unknown parser of the engine does not fail requests', async () => {
  const serverArgs = { tool_call_parser: 'gigachat9', reasoning_parser: 'gigachat9' }
  const { sent, post } = await asker('sglang', { serverInfo: { serverArgs }, embedding: () => [1] })
  expect((await sent({ tools: TOOLS })).status).toBe(200)
  expect((await post('/v1/embeddings', { model: 'test-model', input: 'x' })).status).toBe(200)
})
