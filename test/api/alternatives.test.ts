/** Members of which a request may have several in place of one, over workers of every format: each is sent, named or rejected. */
import { expect, test } from 'vitest'
import { FORMATS, ROUTES, WORKERS } from '../support/formats/lanes.ts'
import type { FormatName } from '../support/formats/sdk-formats.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'

interface Alternatives {
  readonly client: FormatName
  readonly body: object
  /** What only one of the members has, and its name. */
  readonly marks: Readonly<Record<string, string>>
}

const url = (mark: string) => `https://example.com/${mark}`
const base64 = (text: string) => Buffer.from(text).toString('base64')
const textUrl = (text: string) => `data:text/plain;base64,${base64(text)}`
const pdfUrl = (text: string) => `data:application/pdf;base64,${base64(text)}`

const item = (part: object) => [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }, part] }]
const chatUser = { role: 'user', content: 'Hello' }
const chatPart = (part: object) => [{ role: 'user', content: [{ type: 'text', text: 'Hello' }, part] }]
const block = (source: object, type = 'document') => [{ role: 'user', content: [{ type, source }] }]

const responses = (input: unknown, marks: Alternatives['marks'], more: object = {}): Alternatives => ({
  client: 'responses',
  body: { store: false, input, ...more },
  marks,
})
const chat = (messages: unknown, marks: Alternatives['marks'], more: object = {}): Alternatives => ({
  client: 'chat',
  body: { messages, ...more },
  marks,
})
const messages = (given: unknown, marks: Alternatives['marks'], more: object = {}): Alternatives => ({
  client: 'messages',
  body: { max_tokens: 64, messages: given, ...more },
  marks,
})

const TOOL = { type: 'function', function: { name: 'first', parameters: { type: 'object' } } }
const schema = (mark: string) => ({
  type: 'json_schema',
  schema: { type: 'object', properties: { [mark]: {} } },
})

const CASES: Readonly<Record<string, Alternatives>> = {
  'input_file: data and URL': responses(
    item({
      type: 'input_file',
      filename: 'a.txt',
      file_data: textUrl('mark-data'),
      file_url: url('mark-url'),
    }),
    { 'mark-data': 'file_data', 'mark-url': 'file_url' },
  ),
  'input_file: PDF data and id': responses(
    item({ type: 'input_file', file_data: pdfUrl('mark-data'), file_id: 'mark-id' }),
    { 'mark-data': 'file_data', 'mark-id': 'file_id' },
  ),
  'input_file: URL and id': responses(
    item({ type: 'input_file', file_url: url('mark-url'), file_id: 'mark-id' }),
    { 'mark-url': 'file_url', 'mark-id': 'file_id' },
  ),
  'input_image: URL and id': responses(
    item({ type: 'input_image', image_url: url('mark-url'), file_id: 'mark-id' }),
    { 'mark-url': 'image_url', 'mark-id': 'file_id' },
  ),
  'output of a call: data and URL': responses(
    [
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: 'c',
        output: [{ type: 'input_file', file_data: textUrl('mark-data'), file_url: url('mark-url') }],
      },
    ],
    { 'mark-data': 'file_data', 'mark-url': 'file_url' },
  ),
  'reasoning.summary and generate_summary': responses(
    'Hello',
    { detailed: 'generate_summary' },
    { reasoning: { summary: 'concise', generate_summary: 'detailed' } },
  ),
  'file: data and id': chat(
    chatPart({ type: 'file', file: { file_data: pdfUrl('mark-data'), file_id: 'mark-id' } }),
    { 'mark-data': 'file_data', 'mark-id': 'file_id' },
  ),
  'content and refusal': chat(
    [chatUser, { role: 'assistant', content: 'mark-content', refusal: 'mark-refusal' }, chatUser],
    { 'mark-content': 'content', 'mark-refusal': 'refusal' },
  ),
  'reasoning_content and reasoning': chat(
    [
      chatUser,
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'mark-new',
        reasoning: 'mark-old',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'first', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
    ],
    { 'mark-old': 'reasoning' },
  ),
  'tool_calls and function_call': chat(
    [
      chatUser,
      {
        role: 'assistant',
        content: null,
        function_call: { name: 'first', arguments: '{"a":"mark-old"}' },
        tool_calls: [
          { id: 'c', type: 'function', function: { name: 'first', arguments: '{"a":"mark-new"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
    ],
    { 'mark-new': 'tool_calls', 'mark-old': 'function_call' },
  ),
  'max_completion_tokens and max_tokens': chat(
    [chatUser],
    { 1234: 'max_completion_tokens', 2345: 'max_tokens' },
    { max_completion_tokens: 1234, max_tokens: 2345 },
  ),
  'seed and sampling_seed': chat(
    [chatUser],
    { 1234: 'seed', 2345: 'sampling_seed' },
    { seed: 1234, sampling_seed: 2345 },
  ),
  'tool_choice and function_call': chat(
    [chatUser],
    { 'mark-old': 'function_call' },
    { tools: [TOOL], tool_choice: 'required', function_call: { name: 'mark-old' } },
  ),
  'base64 source with a URL': messages(
    block(
      { type: 'base64', media_type: 'image/png', data: base64('mark-data'), url: url('mark-url') },
      'image',
    ),
    { 'mark-data': 'data', 'mark-url': 'url' },
  ),
  'URL source with data': messages(
    block({ type: 'url', url: url('mark-url'), data: base64('mark-data') }, 'image'),
    {
      'mark-url': 'url',
      'mark-data': 'data',
    },
  ),
  'document: text source with a URL': messages(
    block({ type: 'text', media_type: 'text/plain', data: 'mark-data', url: url('mark-url') }),
    { 'mark-data': 'data', 'mark-url': 'url' },
  ),
  'document: content source with data': messages(
    block({ type: 'content', content: 'mark-content', data: 'mark-data' }),
    { 'mark-content': 'content', 'mark-data': 'data' },
  ),
  'output_config.format and output_format': messages(
    [chatUser],
    { 'mark-new': 'output_config.format', 'mark-old': 'output_format' },
    { output_config: { format: schema('mark-new') }, output_format: schema('mark-old') },
  ),
}

/** What a worker got. */
type Ask = (client: FormatName, body: object) => Promise<{ reply: Response; sent: string }>

const ANSWERS = {
  chat: { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }] },
  responses: { id: 'r', object: 'response', model: 'm', status: 'completed', output: [] },
  messages: { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn', usage: {} },
} as const

async function openWorker(worker: FormatName | 'grpc'): Promise<Ask> {
  if (worker === 'grpc') {
    const { post, engineAnswers, asked } = await openGrpcMessages({
      messages: { pdf: 'file' },
      plugins: { responses: {} },
    })
    await engineAnswers('hi')
    return async (client, body) => {
      const before = asked().length
      return { reply: await post(ROUTES[client], body), sent: JSON.stringify(asked().slice(before)) }
    }
  }
  const fleet = await openFleet({
    workers: [WORKERS[worker]],
    plugins: { messages: { pdf: 'file' }, responses: {} },
  })
  const [first] = fleet.workers
  first.script(`POST ${ROUTES[worker]}`, jsonAnswer(ANSWERS[worker]))
  return async (client, body) => {
    first.requests.length = 0
    const reply = await fleet.post(ROUTES[client], body)
    return { reply, sent: String(first.requestsTo(`POST ${ROUTES[worker]}`).at(0)?.body) }
  }
}

test.each([...FORMATS, 'grpc'] as const)('%s workers', async (worker) => {
  const ask = await openWorker(worker)
  const faults: string[] = []
  for (const [name, { client, body, marks }] of Object.entries(CASES)) {
    const { reply, sent } = await ask(client, { model: 'test-model', ...body })
    const text = await reply.text()
    if (reply.status === 400 && /\bof type '|file by its id|file_not_loaded/.test(text)) continue
    if (reply.status !== 200) faults.push(`${name}: ${reply.status} ${text}`)
    const named = reply.headers.get('x-weir-warning') ?? ''
    for (const [mark, member] of Object.entries(marks)) {
      const isSent = sent.includes(mark) || sent.includes(base64(mark))
      const isNamed = [...named.matchAll(/[\w.]+/g)].some(([path]) => `.${path}`.endsWith(`.${member}`))
      if (!isSent && !isNamed) faults.push(`${name}: ${member} is lost (warning: ${named || 'none'})`)
    }
  }
  expect(faults).toEqual([])
})
