/**
 * Gateways over one worker that streams every event of its format, the client APIs, and readers for the responses of each.
 */
import { expect } from 'vitest'
import { chatStream, wholeChat } from '../fixtures/streams/chat-stream.ts'
import { messagesStream, wholeMessage } from '../fixtures/streams/messages-stream.ts'
import { responsesStream, whole } from '../fixtures/streams/responses-stream.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import type { FleetOptions } from './fleet.ts'
import { VENDOR } from './messages-fleet.ts'
import { type Json, openResponses, RESPONSES, type ResponseJson } from './responses/responses-fleet.ts'

const LOOPBACK = { mcp: { clientServers: { allowsPrivate: true } } }

export interface Lane {
  readonly worker: object
  readonly route: string
  readonly events: readonly Json[]
  readonly reply: Json
  /** What every client receives, independent of its format. */
  readonly said: ChatAnswer
}

export interface ChatAnswer {
  readonly text: string
  readonly reasoning: string
  readonly refusal: string
  /** Id, name, arguments. */
  readonly calls: readonly (readonly [string, string, string])[]
  /** Input, cached, cache write, output, reasoning. */
  readonly usage: readonly number[]
}

const TEXT = 'Let me look: 👩‍👩‍👧'
const ARGUMENTS = '{"q":"\\u00e9 \\"x\\""}'
const USAGE = [30, 10, 5, 20, 7]

export const LANES = {
  responses: {
    worker: { spec: { apis: ['responses'] } },
    route: 'POST /v1/responses',
    events: responsesStream,
    reply: whole,
    said: {
      text: TEXT,
      reasoning: 'in the clear',
      refusal: 'I will not.',
      calls: [['call_8', 'look', ARGUMENTS]],
      usage: USAGE,
    },
  },
  messages: {
    worker: VENDOR,
    route: 'POST /v1/messages',
    events: messagesStream,
    reply: wholeMessage,
    said: {
      text: TEXT,
      reasoning: 'hm, é ☃',
      refusal: '',
      calls: [
        ['toolu_1', 'look', ARGUMENTS],
        ['toolu_2', 'look', '{}'],
      ],
      usage: USAGE,
    },
  },
  chat: {
    worker: {},
    route: 'POST /v1/chat/completions',
    events: chatStream,
    reply: wholeChat,
    said: {
      text: TEXT,
      reasoning: 'hm, é ☃',
      refusal: 'I will not.',
      calls: [
        ['call_1', 'look', ARGUMENTS],
        ['call_2', 'look', '{}'],
      ],
      usage: USAGE,
    },
  },
} as const satisfies Record<string, Lane>

/** Streamed or non-streamed, as requested. */
function answers(events: readonly Json[], reply: Json): Script {
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true
      ? sseAnswer(events.map((event) => JSON.stringify(event)))
      : jsonAnswer(reply)
}

export async function openLane({ worker, route, events, reply }: Lane, kernel: FleetOptions['kernel'] = {}) {
  const plugins = { messages: {}, ...LOOPBACK }
  const fleet = await openResponses(undefined, { workers: [worker], plugins, kernel })
  fleet.workers[0].script(route, answers(events, reply))
  return fleet
}

export const openNative = () => openLane(LANES.responses)

export async function readStream(url: string, body: Json): Promise<ResponseJson[]> {
  const stream = openSse(url, { body: { model: 'test-model', stream: true, ...body } })
  await stream.done
  expect(stream.status, stream.text()).toBe(200)
  const last = stream.events.at(-1)?.data === '[DONE]' ? -1 : undefined
  return stream.events.slice(0, last).map(({ data }) => JSON.parse(data) as ResponseJson)
}

const FUNCTION = { name: 'look', parameters: { type: 'object' } }

/** The client APIs: a request, and readers for its response and its stream. */
export const FRONTS = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: FUNCTION }],
    },
    ofStream: (events: readonly ResponseJson[]) => ofChat(gatherChat(events)),
    ofResponse: (reply: ResponseJson) => ofChat(reply),
  },
  messages: {
    path: '/v1/messages',
    body: {
      max_tokens: 99,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
    },
    ofStream: (events: readonly ResponseJson[]) => ofMessage(gatherMessage(events)),
    ofResponse: (reply: ResponseJson) => ofMessage(reply),
  },
  responses: {
    path: RESPONSES,
    body: { input: 'hi', tools: [{ type: 'function', ...FUNCTION }] },
    ofStream: (events: readonly ResponseJson[]) => ofResponse(events.at(-1).response),
    ofResponse: (reply: ResponseJson) => ofResponse(reply),
  },
} as const

/** The non-streamed response that the chunks add up to. */
function gatherChat(events: readonly ResponseJson[]): ResponseJson {
  const message: ResponseJson = { content: '', reasoning_content: '', refusal: '', tool_calls: [] }
  for (const { choices } of events)
    for (const { delta } of choices) {
      for (const name of ['content', 'reasoning_content', 'refusal']) message[name] += delta[name] ?? ''
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        message.tool_calls[index] ??= { id, function: { name: called.name, arguments: '' } }
        message.tool_calls[index].function.arguments += called.arguments
      }
    }
  return { choices: [{ message }], usage: events.at(-1).usage }
}

export function gatherMessage(events: readonly ResponseJson[]): ResponseJson {
  const message: ResponseJson = { ...events[0].message }
  const blocks: ResponseJson[] = []
  const inputs: string[] = []
  for (const { type, index, content_block: block, delta = {}, usage } of events) {
    if (type === 'content_block_start') blocks[index] = { ...block }
    else if (type === 'content_block_delta') {
      if (delta.type === 'input_json_delta') inputs[index] = (inputs[index] ?? '') + delta.partial_json
      for (const name of ['text', 'thinking', 'signature'])
        if (name in delta) blocks[index][name] += delta[name]
      if ('citation' in delta) blocks[index].citations = [...(blocks[index].citations ?? []), delta.citation]
    } else if (type === 'message_delta') Object.assign(message, delta, { usage })
  }
  for (const [index, text] of inputs.entries()) if (text) blocks[index].input = JSON.parse(text)
  return { ...message, content: blocks }
}

function ofChat({ choices, usage }: ResponseJson): ChatAnswer {
  const { content, reasoning_content: reasoning = '', refusal = '', tool_calls: calls } = choices[0].message
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage
  return {
    text: content,
    reasoning,
    refusal: refusal ?? '',
    calls: calls.map((call: ResponseJson) => [call.id, call.function.name, call.function.arguments]),
    usage: [
      usage.prompt_tokens,
      prompt.cached_tokens,
      prompt.cache_write_tokens,
      usage.completion_tokens,
      completion.reasoning_tokens,
    ],
  }
}

/** Here inputs are objects, and refusals are text. */
function ofMessage({ content, usage }: ResponseJson): ChatAnswer {
  const all = (type: string, member: string) =>
    content.flatMap((block: ResponseJson) => (block.type === type ? [block[member]] : []))
  const calls = content.filter(({ type }: ResponseJson) => type === 'tool_use')
  const cached = usage.cache_read_input_tokens
  const written = usage.cache_creation_input_tokens
  return {
    text: all('text', 'text').join(''),
    reasoning: all('thinking', 'thinking').join(''),
    refusal: '',
    calls: calls.map(({ id, name, input }: ResponseJson) => [id, name, JSON.stringify(input)]),
    usage: [
      usage.input_tokens + cached + written,
      cached,
      written,
      usage.output_tokens,
      usage.output_tokens_details.thinking_tokens,
    ],
  }
}

function ofResponse({ output: items, usage }: ResponseJson): ChatAnswer {
  const parts = (type: string, member: string) =>
    items.flatMap(
      (item: ResponseJson) => item[member]?.filter((part: ResponseJson) => part.type === type) ?? [],
    )
  const joined = (all: ResponseJson[], member: string) => all.map((part) => part[member]).join('')
  const calls = items.filter(({ type }: ResponseJson) => type === 'function_call')
  return {
    text: joined(parts('output_text', 'content'), 'text'),
    reasoning:
      joined(parts('reasoning_text', 'content'), 'text') || joined(parts('summary_text', 'summary'), 'text'),
    refusal: joined(parts('refusal', 'content'), 'refusal'),
    calls: calls.map((call: ResponseJson) => [call.call_id, call.name, call.arguments]),
    usage: [
      usage.input_tokens,
      usage.input_tokens_details.cached_tokens,
      usage.input_tokens_details.cache_write_tokens,
      usage.output_tokens,
      usage.output_tokens_details.reasoning_tokens,
    ],
  }
}
