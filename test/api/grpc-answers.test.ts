/** Responses built from the tokens of gRPC engines: truncated tool calls, and constrained output of reasoning models. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { eventsOf, shareGrpcFleets } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const dim = {
  type: 'function',
  function: { name: 'dim', parameters: { type: 'object', properties: { level: { type: 'integer' } } } },
}

const folder = mkdtempSync(join(tmpdir(), 'weir-answers-'))
afterAll(() => rmSync(folder, { recursive: true }))
const openShared = shareGrpcFleets()

/** A template that opens the reasoning block unless thinking is disabled. */
function thinkingTemplate(): string {
  const path = join(folder, 'thinking.jinja')
  const end =
    "{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- else %}{{ '<think>\\n' }}{%- endif %}"
  writeFileSync(
    path,
    `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}${end}{%- endif %}`,
  )
  return path
}

interface Choice {
  readonly finish_reason: string
  readonly message: {
    readonly content: string | null
    readonly reasoning_content?: string
    readonly tool_calls?: readonly {
      readonly function: { readonly name: string; readonly arguments: string }
    }[]
  }
}

/** The first choice of a non-streamed response. */
async function readChoice(reply: Response) {
  const [choice] = ((await reply.json()) as { choices: Choice[] }).choices
  const { content, reasoning_content: reasoning = '', tool_calls: calls = [] } = choice.message
  const called = calls.map((call) => [call.function.name, call.function.arguments])
  return { reason: choice.finish_reason, content, reasoning, calls: called }
}

interface Delta {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly {
    readonly id?: string
    readonly function: { readonly name?: string; readonly arguments?: string }
  }[]
}

/** Deltas of the only choice of a stream. */
const deltasOf = (text: string) =>
  eventsOf(text)
    .slice(0, -1)
    .flatMap((data) => (JSON.parse(data) as { choices: { delta: Delta }[] }).choices)
    .map(({ delta }) => delta)

describe('non-streamed responses', () => {
  const CALL = '<tool_call>\n{"name":"dim","arguments":{"level":3}}\n</tool_call>'
  const BROKEN = 'Sure. <tool_call>\n{"name":"dim","arguments":{"level":}}\n</tool_call>'

  test.each([
    ['is truncated', `Sure. ${CALL}`.slice(0, -15), 'length', 'Sure.', [['dim', '{"level":3']]],
    ['is not JSON', BROKEN, 'stop', BROKEN, []],
  ])('a tool call that %s is not reported as finished', async (_, text, reason, content, calls) => {
    const serverInfo = { serverArgs: { tool_call_parser: 'qwen' } }
    const { engine, post, ids } = await openShared({ engines: [{ serverInfo }] })
    engine.answer([await ids(text)], { finishReason: reason })
    const choice = await readChoice(await post(CHAT, { ...ask, tools: [dim] }))
    expect({ ...choice, content: choice.content?.trim() }).toEqual({ reason, content, reasoning: '', calls })
    engine.answer([await ids(CALL)])
    expect(await readChoice(await post(CHAT, { ...ask, tools: [dim] }))).toMatchObject({
      reason: 'tool_calls',
      calls: [['dim', '{"level":3}']],
    })
  })
})

describe('reasoning models', () => {
  const think = {
    template: thinkingTemplate(),
    engines: [{ serverInfo: { serverArgs: { reasoning_parser: 'qwen3' } } }],
  }
  const promptOf = ({ calls }: { readonly calls: readonly { readonly request: object }[] }) =>
    (calls[calls.length - 1].request as { tokenized: { originalText: string } }).tokenized.originalText

  test('enable_thinking false changes the prompt, and the output has no reasoning', async () => {
    const { engine, post, ids } = await openShared(think)
    engine.answer((await ids('Hello.')).map((id) => [id]))
    const off = { ...ask, chat_template_kwargs: { enable_thinking: false } }
    expect(await readChoice(await post(CHAT, off))).toMatchObject({ content: 'Hello.', reasoning: '' })
    expect(promptOf(engine).endsWith('<think>\n\n</think>\n\n')).toBe(true)
    const streamed = deltasOf(await (await post(CHAT, { ...off, stream: true })).text())
    expect(streamed.find(({ content }) => content)?.content).toBe('H')
    expect(streamed.some(({ reasoning_content: given }) => given)).toBe(false)

    expect(await readChoice(await post(CHAT, ask))).toMatchObject({ content: null, reasoning: 'Hello.' })
    expect(promptOf(engine).endsWith('<think>\n')).toBe(true)
  })

  test('output truncated inside the reasoning has no content and finish_reason length', async () => {
    const { engine, post, ids } = await openShared(think)
    engine.answer(
      (await ids('Let me see')).map((id) => [id]),
      { finishReason: 'length' },
    )
    expect(await readChoice(await post(CHAT, ask))).toEqual({
      reason: 'length',
      content: null,
      reasoning: 'Let me see',
      calls: [],
    })
    const streamed = deltasOf(await (await post(CHAT, { ...ask, stream: true })).text())
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe('')
    expect(streamed.map(({ reasoning_content: given }) => given ?? '').join('')).toBe('Let me see')
  })

  test('blank lines between reasoning and a tool call are not content', async () => {
    const { engine, post, ids } = await openShared({
      ...think,
      engines: [{ serverInfo: { serverArgs: { reasoning_parser: 'qwen3', tool_call_parser: 'qwen' } } }],
    })
    const text = 'hm</think>\n\n<tool_call>\n{"name":"dim","arguments":{"level":3}}\n</tool_call>\n'
    engine.answer((await ids(text)).map((id) => [id]))
    const body = { ...ask, tools: [dim] }
    expect(await readChoice(await post(CHAT, body))).toEqual({
      reason: 'tool_calls',
      content: null,
      reasoning: 'hm',
      calls: [['dim', '{"level":3}']],
    })
    const streamed = deltasOf(await (await post(CHAT, { ...body, stream: true })).text())
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe('')
  })
})

describe('tool_choice over gRPC', () => {
  const required = { ...ask, tools: [dim], tool_choice: 'required' }
  const named = { ...ask, tools: [dim], tool_choice: { type: 'function', function: { name: 'dim' } } }

  test('tool_choice none returns a call as text, streamed and non-streamed', async () => {
    const { engine, post, ids } = await openShared({
      engines: [{ serverInfo: { serverArgs: { tool_call_parser: 'qwen' } } }],
    })
    const text = 'So: <tool_call>\n{"name":"dim","arguments":{}}\n</tool_call> it is.'
    engine.answer((await ids(text)).map((id) => [id]))
    const body = { ...ask, tools: [dim], tool_choice: 'none', skip_special_tokens: false }
    expect(await readChoice(await post(CHAT, body))).toEqual({
      reason: 'stop',
      content: text,
      reasoning: '',
      calls: [],
    })
    const streamed = deltasOf(await (await post(CHAT, { ...body, stream: true })).text())
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe(text)
  })

  test('a truncated array of calls is returned as content with finish_reason length', async () => {
    const { engine, post, ids } = await openShared()
    const array = '[{"name":"dim","parameters":{"level":3}},{"name":"dim","parameters":{}}]'
    engine.answer((await ids(array)).map((id) => [id]))
    const calls = [
      ['dim', '{"level":3}'],
      ['dim', '{}'],
    ]
    expect(await readChoice(await post(CHAT, required))).toEqual({
      reason: 'tool_calls',
      content: null,
      reasoning: '',
      calls,
    })
    const cut = array.slice(0, 20)
    engine.answer(
      (await ids(cut)).map((id) => [id]),
      { finishReason: 'length' },
    )
    expect(await readChoice(await post(CHAT, required))).toEqual({
      reason: 'length',
      content: cut,
      reasoning: '',
      calls: [],
    })
  })

  test('the first delta of a named call has its id and name, later deltas have arguments only', async () => {
    const { engine, post, ids } = await openShared()
    engine.answer((await ids('{"level": 3}')).map((id) => [id]))
    const streamed = deltasOf(await (await post(CHAT, { ...named, stream: true })).text())
    const [first, ...rest] = streamed.flatMap(({ tool_calls: given }) => given ?? [])
    expect(first).toEqual({
      index: 0,
      id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
      type: 'function',
      function: { name: 'dim', arguments: '' },
    })
    expect(rest.every((one) => one.id === undefined && one.function.name === undefined)).toBe(true)
    expect(rest.map((one) => one.function.arguments).join('')).toBe('{"level":3}')
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe('')
  })

  test('conflicting, unknown and missing tools are rejected with 400', async () => {
    const { engine, post } = await openShared()
    const withDefinition = (name: string, type: string) => ({
      type: 'function',
      function: { name, parameters: { $defs: { X: { type } }, properties: { x: { $ref: '#/$defs/X' } } } },
    })
    const tools = [withDefinition('a', 'string'), withDefinition('b', 'number')]
    for (const [body, words] of [
      [{ tools, tool_choice: 'required' }, 'conflicting'],
      [{ tools, tool_choice: { type: 'function', function: { name: 'c' } } }, '"c"'],
      [{ tools: [{ type: 'function', function: { description: 'x' } }] }, 'name'],
      [{ tool_choice: 'required' }, 'tools'],
    ] as const) {
      const reply = await post(CHAT, { ...ask, ...body })
      const { error } = (await reply.json()) as { error: { message: string } }
      expect([reply.status, error.message]).toEqual([400, expect.stringContaining(words)])
    }
    expect(engine.calls).toEqual([])
  })

  test('Kimi-K2 call ids continue the count of calls in the conversation', async () => {
    const { engine, post, ids } = await openShared({
      engines: [{ model: 'Kimi-K2-Instruct' }],
      plugins: {
        tokenizers: {
          load: ['Kimi-K2-Instruct', 'test-model'].map((name) => ({ name, source: 'weir:sample' })),
        },
      },
    })
    const call = (index: number) =>
      `<|tool_call_begin|>functions.dim:${index}<|tool_call_argument_begin|>{}<|tool_call_end|>`
    const text = `<|tool_calls_section_begin|>${call(0)}${call(1)}<|tool_calls_section_end|>`
    engine.answer((await ids(text)).map((id) => [id]))
    const made = { id: 'x', type: 'function', function: { name: 'dim', arguments: '{}' } }
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [made, { ...made, id: 'y' }] },
      { role: 'tool', tool_call_id: 'x', content: 'dark' },
      { role: 'tool', tool_call_id: 'y', content: 'dark' },
    ]
    const reply = await post(CHAT, { model: 'Kimi-K2-Instruct', messages, tools: [dim] })
    const { choices } = (await reply.json()) as { choices: { message: { tool_calls?: { id: string }[] } }[] }
    expect(choices[0].message.tool_calls?.map(({ id }) => id)).toEqual(['functions.dim:2', 'functions.dim:3'])
  })
})

describe('constrained output of reasoning models', () => {
  const named = { tools: [dim], tool_choice: { type: 'function', function: { name: 'dim' } } }
  const required = { tools: [dim], tool_choice: 'required' }
  const schema = {
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
  }
  const waiting = [
    ['sglang', { runtime: 'sglang' }],
    ['vllm', { runtime: 'vllm', serverInfo: { constrainedDecodingStart: 'after_reasoning' } }],
  ] as const

  test.each(waiting)('%s reasons first and then meets the constraint', async (_, engine) => {
    const {
      engine: player,
      post,
      ids,
    } = await openShared({
      engines: [engine],
      template: thinkingTemplate(),
    })
    for (const [demand, written, expected] of [
      [named, '{"level":3}', { calls: [['dim', '{"level":3}']], content: null }],
      [
        required,
        '[{"name":"dim","parameters":{"level":3}}]',
        { calls: [['dim', '{"level":3}']], content: null },
      ],
      [schema, '{"a":1}', { calls: [], content: '{"a":1}' }],
    ] as const) {
      player.answer([await ids(`I should dim it.</think>${written}`)])
      const choice = await readChoice(await post(CHAT, { ...ask, ...demand }))
      expect(choice).toMatchObject({ reasoning: 'I should dim it.', ...expected })
      // An engine started without a reasoning parser applies the grammar from the first token.
      player.answer([await ids(written)])
      expect(await readChoice(await post(CHAT, { ...ask, ...demand }))).toMatchObject({
        reasoning: '',
        ...expected,
      })
    }
  })

  test('an engine whose grammar applies from the first token returns no reasoning', async () => {
    const { engine, post, ids } = await openShared({
      engines: [{ runtime: 'vllm' }],
      template: thinkingTemplate(),
    })
    engine.answer([await ids('{"a":1}')])
    const held = await readChoice(await post(CHAT, { ...ask, ...schema }))
    expect(held).toMatchObject({ reasoning: '', content: '{"a":1}' })
    engine.answer([await ids('{"level":3}')])
    const called = await readChoice(await post(CHAT, { ...ask, ...named }))
    expect(called).toMatchObject({ reasoning: '', calls: [['dim', '{"level":3}']] })
    engine.answer([await ids('so</think>free')])
    expect(await readChoice(await post(CHAT, ask))).toMatchObject({ reasoning: 'so', content: 'free' })
  })
})

describe('prompt and text', () => {
  test('continue_final_message ends the prompt with the assistant message and returns the continuation', async () => {
    const { engine, post, ids } = await openShared()
    engine.answer((await ids(' nine.')).map((id) => [id]))
    const messages = [...ask.messages, { role: 'assistant', content: 'It is' }]
    const body = { ...ask, messages, continue_final_message: true }
    expect(await readChoice(await post(CHAT, body))).toMatchObject({ content: ' nine.', reason: 'stop' })
    const streamed = deltasOf(await (await post(CHAT, { ...body, stream: true })).text())
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe(' nine.')
    for (const { request } of engine.calls)
      expect(
        (request as unknown as Prompted).tokenized.originalText.endsWith('<|im_start|>assistant\nIt is'),
      ).toBe(true)
    const { status } = await post(CHAT, { ...ask, continue_final_message: true })
    expect(status).toBe(400)
  })

  test('skip_special_tokens false returns special tokens as text', async () => {
    const { engine, post, ids } = await openShared()
    engine.answer((await ids('a<|im_start|>b')).map((id) => [id]))
    expect(await readChoice(await post(CHAT, ask))).toMatchObject({ content: 'ab' })
    const kept = { ...ask, skip_special_tokens: false }
    expect(await readChoice(await post(CHAT, kept))).toMatchObject({ content: 'a<|im_start|>b' })
    const streamed = deltasOf(await (await post(CHAT, { ...kept, stream: true })).text())
    expect(streamed.map(({ content }) => content ?? '').join('')).toBe('a<|im_start|>b')
    const skips = engine.calls.map(
      ({ request }) => (request as unknown as Sampled).samplingParams.skipSpecialTokens,
    )
    expect(skips).toEqual([true, false, false])
  })

  test('an exception raised by the template is a 400 with its message', async () => {
    const path = join(folder, 'strict.jinja')
    writeFileSync(
      path,
      "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{{ messages[0].content }}",
    )
    const { engine, post } = await openShared({ template: path })
    const reply = await post(CHAT, { ...ask, messages: [{ role: 'system', content: 'x' }, ...ask.messages] })
    const { error } = (await reply.json()) as { error: { message: string } }
    expect([reply.status, error.message]).toEqual([400, expect.stringContaining('System role not supported')])
    expect(engine.calls).toEqual([])
  })
})

interface Prompted {
  readonly tokenized: { readonly originalText: string }
}
interface Sampled {
  readonly samplingParams: { readonly skipSpecialTokens: boolean }
}

test.each([
  ['max', 'keep', 'max'],
  ['max', 'lower', 'high'],
  ['max', '', 'high'],
  ['low', 'reject', 'low'],
  ['newer', 'reject', 'newer'],
])('the effort %s at a worker with the label effort %j is %s in the prompt', async (effort, label, shown) => {
  const path = join(folder, 'effort.jinja')
  writeFileSync(path, '{%- for m in messages %}{{ m.content }}{%- endfor %} effort={{ reasoning_effort }}')
  const { engine, post, ids } = await openShared({
    template: path,
    engines: [{ spec: { labels: { effort: label } } }],
  })
  engine.answer([await ids('Hello.')])
  const response = await post(CHAT, { ...ask, reasoning_effort: effort })
  expect(response.status).toBe(200)
  const request = engine.calls[0].request as unknown as { tokenized: { originalText: string } }
  expect(request.tokenized.originalText).toBe(`hi effort=${shown}`)
})

test('a gRPC worker with the label effort reject refuses efforts above high before it is asked', async () => {
  const { engine, post } = await openShared({ engines: [{ spec: { labels: { effort: 'reject' } } }] })
  const response = await post(CHAT, { ...ask, reasoning_effort: 'xhigh' })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: {
      code: 'unsupported_by_worker',
      param: 'reasoning_effort',
      message: expect.stringContaining('xhigh'),
    },
  })
  expect(engine.calls).toEqual([])
})

test('without a thinking setting the template decides, and reasoning is detected from the prompt', async () => {
  const path = join(folder, 'off-by-default.jinja')
  const end =
    "{%- if enable_thinking is defined and enable_thinking %}{{ '<think>\\n' }}{%- else %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
  writeFileSync(
    path,
    `{%- for m in messages %}{{ m.content }}{%- endfor %}{%- if add_generation_prompt %}${end}{%- endif %}`,
  )
  const { engine, post, ids } = await openShared({ template: path })
  const sent = async (body: object) => {
    engine.calls.length = 0
    const choice = await readChoice(await post(CHAT, { ...ask, ...body }))
    const request = engine.calls[0].request as unknown as {
      tokenized: { originalText: string }
      requireReasoning: boolean
    }
    return { ...choice, prompt: request.tokenized.originalText, thinks: request.requireReasoning }
  }
  engine.answer([await ids('Hello.')])
  const off = { prompt: 'hi<think>\n\n</think>\n\n', content: 'Hello.', reasoning: '', thinks: false }
  expect(await sent({})).toMatchObject(off)
  expect(await sent({ reasoning_effort: 'none' })).toMatchObject(off)
  engine.answer([await ids('hm</think>Hello.')])
  expect(await sent({ chat_template_kwargs: { enable_thinking: true } })).toMatchObject({
    prompt: 'hi<think>\n',
    content: 'Hello.',
    reasoning: 'hm',
    thinks: true,
  })
})

test.each([
  [
    'a call',
    { tool_call_parser: 'qwen' },
    '<tool_call>\n{"name":"dim","arguments":{"level":3}}\n</tool_call>',
    'tool_calls',
  ],
  ['reasoning', { reasoning_parser: 'qwen3' }, '<think>so</think>Hello.', 'stop'],
])('token ids and log probabilities of %s are returned, streamed and non-streamed', async (...row) => {
  const [, serverArgs, text, reason] = row
  const serverInfo = { serverArgs }
  const { engine, post, ids } = await openShared({ engines: [{ runtime: 'vllm', serverInfo }] })
  const tokens = await ids(text)
  const of = (tokenIds: number[]) => ({
    tokenIds,
    outputLogprobs: { tokenLogprobs: tokenIds.map(() => -0.5), tokenIds, topLogprobs: [] },
  })
  engine.script = ({ request }) => [
    ...((request as { stream: boolean }).stream
      ? tokens.map((id) => ({ chunk: { ...of([id]), promptTokens: 7, completionTokens: 1 } }))
      : []),
    {
      complete: {
        ...of(tokens),
        outputIds: tokens,
        finishReason: 'stop',
        promptTokens: 7,
        completionTokens: tokens.length,
      },
    },
  ]
  const asked = { ...ask, tools: [dim], return_token_ids: true, logprobs: true }
  interface TokenFields {
    readonly token_ids?: number[]
    readonly logprobs: { readonly content: readonly object[] } | null
  }
  const { choices } = (await (await post(CHAT, asked)).json()) as { choices: (TokenFields & Choice)[] }
  expect(choices[0].finish_reason).toBe(reason)
  expect([choices[0].token_ids, choices[0].logprobs?.content.length]).toEqual([tokens, tokens.length])
  const streamed = eventsOf(await (await post(CHAT, { ...asked, stream: true })).text()).slice(0, -1)
  const streamedChoices = streamed.flatMap((data) => (JSON.parse(data) as { choices: TokenFields[] }).choices)
  expect(streamedChoices.flatMap(({ token_ids }) => token_ids ?? [])).toEqual(tokens)
  expect(streamedChoices.flatMap(({ logprobs }) => logprobs?.content ?? [])).toHaveLength(tokens.length)
})
