/** Runs the engine adapter contract over the HTTP adapters. */

import type { EngineAdapter } from '#kernel'
import lineEngine from '../../examples/custom-engine/line-engine.ts'
import { chatEngine } from '../../plugins/protocols/chat/engine/chat-engine.ts'
import { generateEngine } from '../../plugins/protocols/chat/engine/generate-engine.ts'
import { messagesEngine } from '../../plugins/protocols/messages/engine/messages-engine.ts'
import { responsesEngine } from '../../plugins/protocols/responses/engine/responses-engine.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { engineContract } from './engine-contract.ts'

const chatWorker = workerEntry({ slot: 0, apis: ['chat'] })
const sse = (...data: readonly string[]) => data.map((one) => Buffer.from(`data: ${one}\n\n`))
const chunk = (delta: unknown, reason: string | null = null) =>
  JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const EVENT_STREAM = ['content-type', 'text/event-stream']
const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":' } }

engineContract('chat', () => ({
  adapter: chatEngine({ maxAnswerBytes: 1 << 20, systemMessages: 'merge' }),
  worker: chatWorker,
  otherWorker: workerEntry({ slot: 1, apis: ['messages'] }),
  cutsAnywhere: true,
  answers: [
    {
      name: 'text',
      headers: EVENT_STREAM,
      chunks: sse(chunk({ content: 'Grü' }), chunk({ content: 'ße' }), chunk({}, 'stop'), '[DONE]'),
      text: 'Grüße',
    },
    {
      name: 'a tool call in pieces',
      headers: EVENT_STREAM,
      chunks: sse(
        chunk({ tool_calls: [call] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
      text: '',
      calls: [['f', '{"x":1}']],
    },
    {
      name: 'a whole answer',
      headers: ['content-type', 'application/json'],
      chunks: [
        Buffer.from(
          JSON.stringify({ choices: [{ index: 0, message: { content: 'hi' }, finish_reason: 'stop' }] }),
        ),
      ],
      text: 'hi',
    },
    {
      name: 'an error in the stream',
      headers: EVENT_STREAM,
      chunks: sse(chunk({ content: 'x' }), '{"error":{"message":"no"}}'),
      text: 'x',
      fails: true,
    },
  ],
}))

const event = (type: string, more: object = {}) =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
const began = event('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 5 } } })
const blockStart = (index: number, block: object) =>
  event('content_block_start', { index, content_block: block })
const blockDelta = (index: number, one: object) => event('content_block_delta', { index, delta: one })
const blockEnd = (index: number) => event('content_block_stop', { index })
const messageEnd = (reason: string) => [
  event('message_delta', {
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens: 3 },
  }),
  event('message_stop'),
]
const textOf = (...deltas: readonly string[]) => [
  blockStart(0, { type: 'text', text: '' }),
  ...deltas.map((text) => blockDelta(0, { type: 'text_delta', text })),
  blockEnd(0),
]

const generated = (text: string, meta: object = {}, more: object = {}) =>
  JSON.stringify({ text, output_ids: [1], meta_info: { id: 'g', finish_reason: null, ...meta }, ...more })
const STOPPED = { finish_reason: { type: 'stop', matched: 2 }, prompt_tokens: 3, completion_tokens: 2 }

engineContract('generate', () => ({
  adapter: generateEngine({ maxAnswerBytes: 1 << 20 }),
  worker: workerEntry({ slot: 0, apis: ['generate'] }),
  otherWorker: workerEntry({ slot: 1, apis: ['messages'] }),
  cutsAnywhere: true,
  answers: [
    {
      name: 'whole texts so far',
      headers: EVENT_STREAM,
      chunks: sse(generated('Grü'), generated('Grüße'), generated('Grüße', STOPPED), '[DONE]'),
      text: 'Grüße',
    },
    {
      name: 'new texts only',
      headers: EVENT_STREAM,
      chunks: sse(generated('Grü'), generated('ße', STOPPED), '[DONE]'),
      text: 'Grüße',
    },
    {
      name: 'a whole answer',
      headers: ['content-type', 'application/json'],
      chunks: [Buffer.from(generated('hi', STOPPED))],
      text: 'hi',
    },
    {
      name: 'a list of one answer',
      headers: ['content-type', 'application/json'],
      chunks: [Buffer.from(`[${generated('hi', STOPPED)}]`)],
      text: 'hi',
    },
    {
      name: 'an error in the stream',
      headers: EVENT_STREAM,
      chunks: sse(generated('x'), '{"error":{"message":"no"}}'),
      text: 'x',
      fails: true,
    },
    {
      name: 'a request that the engine aborted',
      headers: EVENT_STREAM,
      chunks: sse(
        generated('x'),
        generated('x', { finish_reason: { type: 'abort', message: 'no' } }),
        '[DONE]',
      ),
      text: 'x',
      fails: true,
    },
  ],
}))

engineContract('messages', () => ({
  adapter: messagesEngine({ defaultMaxTokens: 64, maxAnswerBytes: 1 << 20 }),
  worker: workerEntry({ slot: 0, apis: ['messages'] }),
  otherWorker: chatWorker,
  cutsAnywhere: true,
  answers: [
    {
      name: 'text with pings',
      headers: EVENT_STREAM,
      chunks: [began, event('ping'), ...textOf('Grü', 'ße 🙂'), event('ping'), ...messageEnd('end_turn')],
      text: 'Grüße 🙂',
    },
    {
      name: 'thinking, text and a tool call in pieces',
      headers: EVENT_STREAM,
      chunks: [
        began,
        blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
        blockDelta(0, { type: 'thinking_delta', thinking: 'hm' }),
        blockDelta(0, { type: 'signature_delta', signature: 'sig' }),
        blockEnd(0),
        blockStart(1, { type: 'text', text: '' }),
        blockDelta(1, { type: 'text_delta', text: 'I look.' }),
        blockEnd(1),
        blockStart(2, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
        blockDelta(2, { type: 'input_json_delta', partial_json: '' }),
        blockDelta(2, { type: 'input_json_delta', partial_json: '{"x":' }),
        blockDelta(2, { type: 'input_json_delta', partial_json: '1}' }),
        blockEnd(2),
        blockStart(3, { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} }),
        blockEnd(3),
        ...messageEnd('tool_use'),
      ],
      text: 'I look.',
      calls: [
        ['f', '{"x":1}'],
        ['g', '{}'],
      ],
    },
    {
      name: 'unknown events and blocks',
      headers: EVENT_STREAM,
      chunks: [
        began,
        event('brand_new', { x: 1 }),
        blockStart(0, { type: 'hologram', data: 'x' }),
        blockDelta(0, { type: 'hologram_delta', data: 'y' }),
        blockEnd(0),
        blockStart(1, { type: 'text', text: 'so' }),
        blockEnd(1),
        ...messageEnd('end_turn'),
      ],
      text: 'so',
    },
    {
      name: 'a whole message',
      headers: ['content-type', 'application/json'],
      chunks: [
        Buffer.from(
          JSON.stringify({
            id: 'msg_1',
            type: 'message',
            content: [
              { type: 'text', text: 'hi' },
              { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 } },
            ],
            stop_reason: 'tool_use',
            usage: { input_tokens: 1, output_tokens: 1 },
          }),
        ),
      ],
      text: 'hi',
      calls: [['f', '{"x":1}']],
    },
    {
      name: 'an error in the stream',
      headers: EVENT_STREAM,
      chunks: [
        began,
        blockStart(0, { type: 'text', text: '' }),
        blockDelta(0, { type: 'text_delta', text: 'x' }),
        event('error', { error: { type: 'overloaded_error', message: 'no' } }),
      ],
      text: 'x',
      fails: true,
    },
  ],
}))

/** A Responses API stream of a worker, as events. */
const responseEvents = (output: readonly object[], status = 'completed', ...deltas: readonly Buffer[]) => [
  event('response.created', { response: { id: 'resp_1', model: 'm', created_at: 5, output: [] } }),
  ...deltas,
  event(`response.${status}`, {
    response: {
      id: 'resp_1',
      model: 'm',
      created_at: 5,
      status,
      output,
      usage: { input_tokens: 3, output_tokens: 2 },
      ...(status === 'failed' && { error: { code: 'server_error', message: 'no' } }),
    },
  }),
]
const saidItem = (text: string) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const calledItem = { id: 'fc_1', type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}' }
const onItem = (output_index: number, type: string, more: object) =>
  event(`response.${type}`, { output_index, content_index: 0, ...more })

engineContract('responses', () => ({
  adapter: responsesEngine({ toolTypes: null, maxAnswerBytes: 1 << 20 }),
  worker: workerEntry({ slot: 0, apis: ['responses'] }),
  otherWorker: chatWorker,
  cutsAnywhere: true,
  answers: [
    {
      name: 'text and a call, in pieces',
      headers: EVENT_STREAM,
      chunks: responseEvents(
        [saidItem('Grüße'), calledItem],
        'completed',
        onItem(0, 'output_item.added', { item: { ...saidItem(''), content: [] } }),
        onItem(0, 'output_text.delta', { delta: 'Grü' }),
        onItem(0, 'output_text.delta', { delta: 'ße' }),
        onItem(0, 'output_item.done', { item: saidItem('Grüße') }),
        onItem(1, 'output_item.added', { item: { ...calledItem, arguments: '' } }),
        onItem(1, 'function_call_arguments.delta', { delta: '{"x":' }),
        onItem(1, 'function_call_arguments.delta', { delta: '1}' }),
        onItem(1, 'output_item.done', { item: calledItem }),
      ),
      text: 'Grüße',
      calls: [['f', '{"x":1}']],
    },
    {
      name: 'a whole response',
      headers: ['content-type', 'application/json'],
      chunks: [
        Buffer.from(
          JSON.stringify({
            id: 'resp_1',
            model: 'm',
            status: 'completed',
            output: [saidItem('hi'), calledItem],
          }),
        ),
      ],
      text: 'hi',
      calls: [['f', '{"x":1}']],
    },
    {
      name: 'a failure in the stream',
      headers: EVENT_STREAM,
      chunks: responseEvents(
        [],
        'failed',
        onItem(0, 'output_item.added', { item: { ...saidItem(''), content: [] } }),
        onItem(0, 'output_text.delta', { delta: 'x' }),
      ),
      text: 'x',
      fails: true,
    },
  ],
}))

/** The adapter that the example registers. */
function lineAdapter(): EngineAdapter {
  let found: EngineAdapter | null = null
  const host = {
    transport() {},
    workerControl() {},
    use: () => ({
      addEngine(adapter: EngineAdapter) {
        found = adapter
      },
    }),
  }
  lineEngine.register(host as unknown as Parameters<typeof lineEngine.register>[0], {})
  return found as unknown as EngineAdapter
}

const lines = (...all: readonly string[]) => all.map((line) => Buffer.from(line))

engineContract('of the example custom-engine', () => ({
  adapter: lineAdapter(),
  worker: workerEntry({ slot: 0, connectionMode: 'lines', apis: [] }),
  otherWorker: chatWorker,
  cutsAnywhere: false,
  answers: [
    { name: 'words', chunks: lines('WORD Grüße', 'WORD  you', 'DONE 1 2'), text: 'Grüße you' },
    { name: 'a failure', chunks: lines('WORD x', 'FAIL 500 no'), text: 'x', fails: true },
  ],
}))
