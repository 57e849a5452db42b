/** Chat with a model whose tokenizer has a response template. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { eventsOf, openGrpcFleet } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const SAMPLE = new URL('../../plugins/models/tokenizers/sample/', import.meta.url).pathname
const TEMPLATE = {
  start_anchor: '<|im_start|>assistant\n',
  fields: {
    reasoning_content: { open: '{{mind}}', close: '{{/mind}}' },
    tool_calls: {
      open_pattern: '\\s*\\{\\{do (?P<name>\\w+)\\}\\}',
      close: '{{/do}}',
      repeats: true,
      content: 'json',
      content_args: { unquoted_keys: true },
      transform: { type: 'function', function: { name: '{name}', arguments: '{content}' } },
    },
    content: { close_pattern: '\\s*\\{\\{end\\}\\}' },
  },
}
const WRITTEN =
  '{{mind}}It is dim.{{/mind}}\n\nWith pleasure.\n{{do light}}{level: 3}{{/do}}\n{{do light}}{level:"9"}{{/do}} {{end}}'
const light = {
  type: 'function',
  function: {
    name: 'light',
    parameters: { type: 'object', properties: { level: { type: 'integer' } } },
  },
}
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'light' }], tools: [light] }

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

async function openFleet(template: object) {
  const source = mkdtempSync(join(tmpdir(), 'weir-response-template-'))
  folders.push(source)
  for (const name of ['tokenizer.json', 'chat_template.jinja'])
    copyFileSync(join(SAMPLE, name), join(source, name))
  const config = { eos_token: '<|im_end|>', response_template: template }
  writeFileSync(join(source, 'tokenizer_config.json'), JSON.stringify(config))
  return openGrpcFleet({ plugins: { tokenizers: { load: [{ name: 'test-model', source }] } } })
}

interface Message {
  readonly content?: string | null
  readonly reasoning_content?: string
  readonly tool_calls?: readonly {
    readonly index?: number
    readonly function: { name?: string; arguments?: string }
  }[]
}

test('hf: reasoning, text and calls of a non-streamed response are separated by the template', async () => {
  const { engine, post, ids } = await openFleet(TEMPLATE)
  engine.answer((await ids(WRITTEN)).map((id) => [id]))
  const reply = (await (await post(CHAT, ask)).json()) as {
    choices: { message: Message; finish_reason: string }[]
    usage: { completion_tokens_details: { reasoning_tokens: number } }
  }
  const mind = await ids('{{mind}}It is dim.{{/mind}}')
  expect(reply.usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(mind.length / 4)
  expect(reply.usage.completion_tokens_details.reasoning_tokens).toBeLessThanOrEqual(mind.length)
  expect(reply.choices).toMatchObject([
    {
      finish_reason: 'tool_calls',
      message: {
        content: 'With pleasure.',
        reasoning_content: 'It is dim.',
        tool_calls: [
          { function: { name: 'light', arguments: '{"level":3}' } },
          { function: { name: 'light', arguments: '{"level":9}' } },
        ],
      },
    },
  ])
})

test('hf: reasoning, text and calls of a stream are separated by the template', async () => {
  const { engine, post, ids } = await openFleet(TEMPLATE)
  engine.answer((await ids(WRITTEN)).map((id) => [id]))
  const data = eventsOf(await (await post(CHAT, { ...ask, stream: true })).text())
  const deltas = data
    .slice(0, -1)
    .flatMap((text) => (JSON.parse(text) as { choices: { delta: Message }[] }).choices)
    .map(({ delta }) => delta)
  const joined = (part: (delta: Message) => string | null | undefined) =>
    deltas.map((delta) => part(delta) ?? '').join('')
  const calls = deltas.flatMap((delta) => delta.tool_calls ?? [])
  const argumentsOf = (index: number) =>
    calls.map((call) => (call.index === index ? (call.function.arguments ?? '') : '')).join('')
  expect([
    data.at(-1),
    joined((delta) => delta.reasoning_content),
    joined((delta) => delta.content),
    calls.flatMap((call) => call.function.name ?? []),
    argumentsOf(0),
    argumentsOf(1),
  ]).toEqual(['[DONE]', 'It is dim.', 'With pleasure.', ['light', 'light'], '{"level":3}', '{"level":9}'])
})

test('hf: an invalid template leaves the output as text', async () => {
  const { engine, post, ids } = await openFleet({ ...TEMPLATE, start_anchor: undefined })
  engine.answer((await ids(WRITTEN)).map((id) => [id]))
  const reply = (await (await post(CHAT, ask)).json()) as { choices: { message: Message }[] }
  expect(reply.choices[0].message).toMatchObject({ content: WRITTEN })
})
