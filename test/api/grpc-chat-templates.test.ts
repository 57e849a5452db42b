/** Chats through gRPC engines get the prompt of the model's template, whatever Jinja and Python features it uses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openGrpcFleet, until } from './grpc-fleet.ts'
import type { EngineRequest } from './messages-grpc-fleet.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-chat-templates-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A gateway whose model has the template. `prompt` sends a chat and returns the prompt that the engine received. */
async function openTemplate(source: string) {
  const template = join(folder, 'chat_template.jinja')
  writeFileSync(template, source)
  const { engine, post, ids } = await openGrpcFleet({ template, plugins: { parsers: {} } })
  engine.answer([await ids('Yes.')])
  return async (body: object) => {
    const reply = await post('/v1/chat/completions', { model: 'test-model', ...body })
    expect(await reply.json()).toMatchObject({ choices: [{ message: { content: 'Yes.' } }] })
    const { tokenized } = engine.calls[engine.calls.length - 1].request as unknown as EngineRequest
    const text = await post('/v1/detokenize', {
      model: 'test-model',
      tokens: tokenized.inputIds,
      skip_special_tokens: false,
    })
    return ((await text.json()) as { text: string }).text
  }
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
  [
    'mappings with integer keys, as in Seed-OSS',
    `{% set limits = {0: 'none', 512: 'short'} %}{{ limits[512] }}{% for at in limits %}[{{ at + 1 }}]{% endfor %}{{ messages[0].content }}`,
    { messages: [USER] },
    'short[1][513]hi',
  ],
  [
    'missing keys of literals, as in Hermes',
    `{% set names = {'string': 'str'} %}{% for tool in tools %}{% for key, schema in tool.function.parameters.properties.items() %}{{ key }}: {{ names[schema.type] if names[schema.type] is defined else 'any' }}{% endfor %}{% endfor %}`,
    { messages: [USER], tools: [TOOL] },
    'when: any',
  ],
  [
    'methods on the content of messages with only tool calls, as in Qwen3',
    `{% for m in messages %}<{{ m.role }}>{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content.strip('\\n') }}{% endif %}{% for call in m.tool_calls %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}`,
    { messages: [USER, ASSISTANT, RESULT] },
    '<user>hi<assistant>order{"items": ["tea"], "keys": 2}<tool>ok',
  ],
  [
    'null content as the mark of tool calls, as in DeepSeek R1',
    `{% for m in messages %}<{{ m.role }}>{% if m.content is none %}{% for call in m.tool_calls %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}`,
    { messages: [USER, ASSISTANT, RESULT] },
    '<user>hi<assistant>order{"items": ["tea"], "keys": 2}<tool>ok',
  ],
  [
    'arguments named like methods, as in GLM',
    `{% for m in messages %}{% for call in m.tool_calls %}{% for key, value in call.function.arguments.items() %}<k>{{ key }}<v>{{ value | tojson }}{% endfor %}{% endfor %}{% endfor %}`,
    { messages: [USER, ASSISTANT, RESULT] },
    '<k>items<v>["tea"]<k>keys<v>2',
  ],
  [
    'documents, and no start of an answer',
    `{% for d in documents %}[{{ d.title }}]{% endfor %}{{ messages[0].content }}{% if add_generation_prompt %}<answer>{% endif %}`,
    { messages: [USER], documents: [{ title: 'A' }], add_generation_prompt: false },
    '[A]hi',
  ],
])('%s', async (_what, template, body, expected) => {
  const prompt = await openTemplate(template)
  expect(await prompt(body)).toBe(expected)
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
