/** Chats through gRPC engines get the prompt of the model's template, whatever Jinja and Python features it uses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type GrpcFleetOptions, openGrpcFleet, shareGrpcFleets, until } from './grpc-fleet.ts'
import type { EngineRequest } from './messages-grpc-fleet.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-chat-templates-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** By model; one gateway serves them all. */
const TEMPLATES: Readonly<Record<string, string>> = {
  'Seed-OSS': `{% set limits = {0: 'none', 512: 'short'} %}{{ limits[512] }}{% for at in limits %}[{{ at + 1 }}]{% endfor %}{{ messages[0].content }}`,
  Hermes: `{% set names = {'string': 'str'} %}{% for tool in tools %}{% for key, schema in tool.function.parameters.properties.items() %}{{ key }}: {{ names[schema.type] if names[schema.type] is defined else 'any' }}{% endfor %}{% endfor %}`,
  Qwen3: `{% for m in messages %}<{{ m.role }}>{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content.strip('\\n') }}{% endif %}{% for call in m.tool_calls %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}`,
  'DeepSeek R1': `{% for m in messages %}<{{ m.role }}>{% if m.content is none %}{% for call in m.tool_calls %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}`,
  GLM: `{% for m in messages %}{% for call in m.tool_calls %}{% for key, value in call.function.arguments.items() %}<k>{{ key }}<v>{{ value | tojson }}{% endfor %}{% endfor %}{% endfor %}`,
  documents: `{% for d in documents %}[{{ d.title }}]{% endfor %}{{ messages[0].content }}{% if add_generation_prompt %}<answer>{% endif %}`,
  numbers:
    '{% for t in tools %}{{ t.function.parameters | tojson }}{% endfor %}{% for m in messages %}{% for c in m.tool_calls %}<{{ c.function.arguments | tojson }}>{% endfor %}{% endfor %}{{ documents | tojson }}',
  // The start of an answer opens a thought; the text of assistant messages follows their role.
  thinking: `{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% if not loop.last %}</>{% endif %}{% endfor %}{% if add_generation_prompt %}</><assistant><think>\n{% endif %}`,
}

const openShared = shareGrpcFleets()
const served: GrpcFleetOptions = {
  engines: [
    {
      spec: {
        models: Object.keys(TEMPLATES).map((id) =>
          id === 'thinking' ? { id, reasoning_parser: 'deepseek_r1' } : { id },
        ),
      },
    },
  ],
  plugins: {
    generations: {},
    messages: {},
    responses: {},
    conversations: {},
    history: {},
    storage: { dir: join(folder, 'storage') },
    tokenizers: {
      load: [
        { name: 'test-model', source: 'weir:sample' },
        ...Object.entries(TEMPLATES).map(([name, template], at) => {
          const chatTemplatePath = join(folder, `${at}.jinja`)
          writeFileSync(chatTemplatePath, template)
          return { name, source: 'weir:sample', chatTemplatePath }
        }),
      ],
    },
  },
}

/** `send` returns the response of a model, and the prompt that the engine received. */
async function openTemplate(model: string) {
  const { engine, gateway, post, ids } = await openShared(served)
  const isLoaded = async () => (await post('/v1/tokenize', { model, prompt: 'x' })).status === 200
  await until(isLoaded)
  const send = async (body: object | string, path = '/v1/chat/completions') => {
    const reply = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify({ model, ...body }),
    })
    const said = await reply.text()
    expect(reply.status, said).toBe(200)
    const { tokenized } = engine.calls[engine.calls.length - 1].request as unknown as EngineRequest
    const text = await post('/v1/detokenize', {
      model,
      tokens: tokenized.inputIds,
      skip_special_tokens: false,
    })
    return { said, prompt: ((await text.json()) as { text: string }).text }
  }
  const engineAnswers = async (text: string) => engine.answer([await ids(text)])
  await engineAnswers('Yes.')
  return { send, engineAnswers }
}

const USER = { role: 'user', content: 'hi' }
const calls = (args: object) => [
  { id: 'c1', type: 'function', function: { name: 'order', arguments: JSON.stringify(args) } },
]
const ASSISTANT = { role: 'assistant', content: null, tool_calls: calls({ items: ['tea'], keys: 2 }) }
const RESULT = { role: 'tool', tool_call_id: 'c1', content: 'ok' }
const TOOL = {
  type: 'function',
  function: { name: 'order', parameters: { type: 'object', properties: { when: { type: 'date' } } } },
}

test.each([
  ['mappings with integer keys', 'Seed-OSS', { messages: [USER] }, 'short[1][513]hi'],
  ['missing keys of literals', 'Hermes', { messages: [USER], tools: [TOOL] }, 'when: any'],
  [
    'methods on the content of messages with only tool calls',
    'Qwen3',
    { messages: [USER, ASSISTANT, RESULT] },
    '<user>hi<assistant>order{"items": ["tea"], "keys": 2}<tool>ok',
  ],
  [
    'null content as the mark of tool calls',
    'DeepSeek R1',
    { messages: [USER, ASSISTANT, RESULT] },
    '<user>hi<assistant>order{"items": ["tea"], "keys": 2}<tool>ok',
  ],
  [
    'arguments named like methods',
    'GLM',
    { messages: [USER, ASSISTANT, RESULT] },
    '<k>items<v>["tea"]<k>keys<v>2',
  ],
  [
    'documents, and no start of an answer',
    'documents',
    { messages: [USER], documents: [{ title: 'A' }], add_generation_prompt: false },
    '[A]hi',
  ],
])('%s: %s', async (_what, model, body, expected) => {
  const { send } = await openTemplate(model)
  expect((await send(body)).prompt).toBe(expected)
})

test('a model whose own template is invalid does not get that of another model of the worker', async () => {
  const chatTemplatePath = join(folder, 'invalid.jinja')
  writeFileSync(chatTemplatePath, '{% if %}')
  const source = 'weir:sample'
  const { engine, get, post } = await openGrpcFleet({
    engines: [{ spec: { models: ['test-model', 'broken', 'adapter'].map((id) => ({ id })) } }],
    plugins: {
      tokenizers: {
        load: [
          { name: 'test-model', source },
          { name: 'broken', source, chatTemplatePath },
        ],
      },
    },
  })
  engine.answer([[1]])
  const state = async () => (await (await get('/v1/tokenizers/broken/status')).json()) as { status: string }
  await until(async () => (await state()).status === 'failed')
  const ask = (model: string) => post('/v1/chat/completions', { model, messages: [USER] })
  const reply = await ask('broken')
  expect([reply.status, await reply.json()]).toEqual([
    500,
    { error: expect.objectContaining({ code: 'tokenizer_missing' }) },
  ])
  expect((await ask('adapter')).status).toBe(200)
})

/** Numbers and names that JSON.parse changes, and the text of Python's JSON. */
const SENT =
  '{"type": "object", "z": 1.0, "10": 1e16, "2": -0.0, "n": 12345678901234567890, "deep": {"7": [1E-7, 0.10]}}'
const SHOWN =
  '{"type": "object", "z": 1.0, "10": 1e+16, "2": -0.0, "n": 12345678901234567890, "deep": {"7": [1e-07, 0.1]}}'
const QUOTED = JSON.stringify(SENT)

test.each([
  [
    '/v1/chat/completions',
    `"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ${QUOTED}}}]}, {"role": "tool", "tool_call_id": "c1", "content": "ok"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": ${SENT}}}], "documents": [${SENT}]`,
    `[${SHOWN}]`,
  ],
  [
    '/v1/messages',
    `"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": ${SENT}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}], "tools": [{"name": "f", "input_schema": ${SENT}}]`,
    'null',
  ],
  [
    '/v1/responses',
    `"input": [{"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ${QUOTED}}, {"type": "function_call_output", "call_id": "c1", "output": "ok"}], "tools": [{"type": "function", "name": "f", "parameters": ${SENT}}]`,
    'null',
  ],
])(
  'numbers and the order of names reach the prompt as they were sent to %s',
  async (path, members, documents) => {
    const { send } = await openTemplate('numbers')
    expect((await send(`{"model": "numbers", ${members}}`, path)).prompt).toBe(
      `${SHOWN}<${SHOWN}>${documents}`,
    )
  },
)

test.each([
  ['It is ', 'nine.', '<user>What is <think>?</><assistant>It is', { content: 'nine.' }],
  [
    '<think>Hm, ',
    'three.</think>Nine.',
    '<user>What is <think>?</><assistant><think>Hm,',
    { content: 'Nine.', reasoning_content: 'three.' },
  ],
])('an answer that begins with %j is continued with %j', async (beginning, output, expected, message) => {
  const { send, engineAnswers } = await openTemplate('thinking')
  await engineAnswers(output)
  const messages = [
    { role: 'user', content: 'What is <think>?' },
    { role: 'assistant', content: beginning },
  ]
  const sent = await send({ messages, continue_final_message: true })
  expect([sent.prompt, JSON.parse(sent.said).choices[0].message]).toEqual([
    expected,
    { role: 'assistant', ...message },
  ])
  const begun = await send({ messages: messages.slice(0, 1) })
  expect(begun.prompt).toBe('<user>What is <think>?</><assistant><think>\n')
})
