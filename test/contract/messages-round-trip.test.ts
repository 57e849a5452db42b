/** Conversions between Messages and chat: fields that both formats have survive the round trip. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EngineAttempt, GenerationRequest } from '#kernel'
import { toChatBody } from '../../plugins/protocols/chat/engine/to-chat-body.ts'
import { fromChatBody } from '../../plugins/protocols/chat/serve/from-chat-body.ts'
import type { ChatRequest } from '../../plugins/protocols/chat/wire/chat.ts'
import { toMessagesBody } from '../../plugins/protocols/messages/engine/to-messages-body.ts'
import { checkRequest } from '../../plugins/protocols/messages/serve/check-request.ts'
import { toGenerationRequest } from '../../plugins/protocols/messages/serve/to-generation-request.ts'
import { workerEntry } from '../support/worker-entry.ts'

type Json = Record<string, unknown>

const attemptOf = (request: GenerationRequest): EngineAttempt =>
  ({
    request,
    model: request.model,
    worker: workerEntry({ slot: 0 }),
    stream: false,
    quirks: {},
  }) as unknown as EngineAttempt
const read = (bytes: Buffer) => JSON.parse(bytes.toString()) as Json
const fromMessages = (body: Json) => toGenerationRequest(checkRequest(body, true), { pdf: 'file' })
const toMessages = (request: GenerationRequest) => read(toMessagesBody(attemptOf(request), 8_192))
const fromChat = (body: Json) => fromChatBody(body as unknown as ChatRequest)
const toChat = (request: GenerationRequest) => read(toChatBody(attemptOf(request)))

const word = fc.stringMatching(/^[a-zé🙂"\\{}]{1,12}$/u)
const id = fc.stringMatching(/^[a-z0-9]{4,10}$/)
const json = fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.oneof(word, fc.integer(), fc.boolean()), {
  maxKeys: 3,
})
const schema = json.map((properties) => ({
  type: 'object',
  properties: Object.fromEntries(Object.keys(properties).map((key) => [key, { type: 'string' }])),
}))
const names = ['look', 'seek', 'find_2']
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const without = (value: Json): Json => JSON.parse(JSON.stringify(value)) as Json

// Messages → chat → Messages.

const image = fc.oneof(
  fc.constant({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }),
  fc.constant({ type: 'image', source: { type: 'url', url: 'https://x/y.png' } }),
)
const text = word.map((content) => ({ type: 'text', text: content }))
const userTurn = fc.oneof(
  word,
  fc.tuple(image, text).map((blocks) => blocks),
)
const exchange = fc
  .record({
    thinking: optional(fc.record({ thinking: word, signature: word })),
    content: optional(word),
    calls: fc.array(fc.record({ id, name: fc.constantFrom(...names), input: json }), { maxLength: 3 }),
    failed: fc.boolean(),
    user: optional(word),
  })
  .map(({ thinking, content, calls, failed, user }): Json[] => {
    const blocks: Json[] = []
    if (thinking !== undefined) blocks.push({ type: 'thinking', ...thinking })
    if (content !== undefined || (calls.length === 0 && thinking === undefined))
      blocks.push({ type: 'text', text: content ?? 'ok' })
    for (const [at, call] of calls.entries())
      blocks.push({ type: 'tool_use', ...call, id: `${call.id}${at}` })
    const only = blocks.length === 1 && blocks[0].type === 'text' ? blocks[0].text : null
    const results = calls.map((call, at) => ({
      type: 'tool_result',
      tool_use_id: `${call.id}${at}`,
      content: 'done',
      ...(failed && { is_error: true }),
    }))
    const next =
      results.length === 0
        ? (user ?? 'go on')
        : [...results, ...(user === undefined ? [] : [{ type: 'text', text: user }])]
    return [
      { role: 'assistant', content: only ?? blocks },
      { role: 'user', content: next },
    ]
  })
const thinkingWish = fc.constantFrom(
  undefined,
  { type: 'adaptive' },
  { type: 'disabled' },
  { type: 'enabled', budget_tokens: 2_000 },
)
const messagesBody = fc
  .record({
    system: optional(word),
    first: userTurn,
    exchanges: fc.array(exchange, { maxLength: 3 }),
    max_tokens: fc.integer({ min: 2_001, max: 9_000 }),
    top_p: optional(fc.constantFrom(0.5, 1)),
    top_k: optional(fc.nat(50)),
    stop_sequences: optional(fc.array(word, { minLength: 1, maxLength: 3 })),
    thinking: thinkingWish,
    effort: optional(fc.constantFrom('low', 'medium', 'high')),
    format: optional(schema),
    user: optional(word),
    tools: fc.subarray(names),
    parallel: optional(fc.boolean()),
    choice: fc.constantFrom('auto', 'any', 'none', 'tool'),
    toolSchema: schema,
    strict: optional(fc.boolean()),
  })
  .map((given) => {
    const isOn = given.thinking !== undefined && given.thinking.type !== 'disabled'
    const choice = isOn && (given.choice === 'any' || given.choice === 'tool') ? 'auto' : given.choice
    const effort = given.thinking?.type === 'disabled' ? undefined : given.effort
    const { tools, parallel } = given
    return without({
      model: 'm',
      max_tokens: given.max_tokens,
      system: given.system,
      messages: [{ role: 'user', content: given.first }, ...given.exchanges.flat()],
      top_p: given.top_p,
      top_k: given.top_k,
      temperature: isOn ? undefined : 0.5,
      stop_sequences: given.stop_sequences,
      thinking: given.thinking,
      output_config:
        effort === undefined && given.format === undefined
          ? undefined
          : { effort, format: given.format && { type: 'json_schema', schema: given.format } },
      metadata: given.user === undefined ? undefined : { user_id: given.user },
      tools:
        tools.length === 0
          ? undefined
          : tools.map((name) => ({
              name,
              description: 'd',
              input_schema: given.toolSchema,
              strict: given.strict,
            })),
      tool_choice:
        tools.length === 0
          ? undefined
          : {
              type: choice,
              name: choice === 'tool' ? tools[0] : undefined,
              disable_parallel_tool_use: choice === 'none' || parallel === undefined ? undefined : !parallel,
            },
    })
  })

test('Messages → internal → Messages keeps every field that both formats have', () => {
  fc.assert(
    fc.property(messagesBody, (body) => {
      expect(toMessages(fromMessages(body))).toEqual(body)
    }),
  )
})

/** The part of a Messages body that chat can express: no thinking signature, no error flag of tool results, no budget. */
function asChatExpresses(body: Json): Json {
  const messages = (body.messages as Json[]).map(({ role, content }) => ({
    role,
    content: Array.isArray(content) ? (content as Json[]).map(blockAsChatExpresses) : content,
  }))
  return { ...body, messages, ...(isBudget(body.thinking) && { thinking: { type: 'adaptive' } }) }
}

const isBudget = (thinking: unknown) => (thinking as Json | undefined)?.type === 'enabled'

function blockAsChatExpresses({ is_error: isError, ...block }: Json): Json {
  if (block.type === 'thinking') return { ...block, signature: '' }
  return isError === true ? { ...block, content: `Error: ${block.content}` } : block
}

test('Messages → chat → Messages keeps every field that both formats have', () => {
  fc.assert(
    fc.property(messagesBody, (body) => {
      const chat = toChat(fromMessages(body))
      expect(toMessages(fromChat(chat))).toEqual(asChatExpresses(body))
    }),
  )
})

// Chat → Messages → chat.

const chatExchange = fc
  .record({
    thought: optional(word),
    content: optional(word),
    calls: fc.array(fc.record({ id, name: fc.constantFrom(...names), input: json }), { maxLength: 3 }),
    user: word,
  })
  .map(({ thought, content, calls, user }): Json[] => [
    without({
      role: 'assistant',
      content: content ?? (calls.length > 0 ? null : 'ok'),
      reasoning_content: thought,
      tool_calls:
        calls.length === 0
          ? undefined
          : calls.map((call, at) => ({
              id: `call_${call.id}${at}`,
              type: 'function',
              function: { name: call.name, arguments: JSON.stringify(call.input) },
            })),
    }),
    ...calls.map((call, at) => ({ role: 'tool', tool_call_id: `call_${call.id}${at}`, content: 'done' })),
    { role: 'user', content: user },
  ])
const chatBody = fc
  .record({
    system: optional(word),
    first: fc.oneof(
      word,
      fc.constant([
        { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        { type: 'text', text: 'this?' },
      ]),
    ),
    exchanges: fc.array(chatExchange, { maxLength: 3 }),
    max_tokens: fc.integer({ min: 1, max: 9_000 }),
    temperature: optional(fc.constantFrom(0, 0.5, 1)),
    top_p: optional(fc.constantFrom(0.5, 1)),
    top_k: optional(fc.nat(50)),
    stop: optional(fc.array(word, { minLength: 1, maxLength: 3 })),
    effort: optional(fc.constantFrom('low', 'medium', 'high')),
    format: optional(schema),
    user: optional(word),
    tools: fc.subarray(names),
    choice: fc.constantFrom('auto', 'none', 'required', 'one'),
    parallel: optional(fc.boolean()),
    toolSchema: schema,
  })
  .map((given) => {
    const { tools, choice } = given
    return without({
      model: 'm',
      messages: [
        ...(given.system === undefined ? [] : [{ role: 'system', content: given.system }]),
        { role: 'user', content: given.first },
        ...given.exchanges.flat(),
      ],
      max_tokens: given.max_tokens,
      temperature: given.temperature,
      top_p: given.top_p,
      top_k: given.top_k,
      stop: given.stop,
      reasoning_effort: given.effort,
      response_format: given.format && {
        type: 'json_schema',
        json_schema: { name: 'output', schema: given.format, strict: true },
      },
      user: given.user,
      tools:
        tools.length === 0
          ? undefined
          : tools.map((name) => ({
              type: 'function',
              function: { name, description: 'd', parameters: given.toolSchema },
            })),
      tool_choice:
        tools.length === 0
          ? undefined
          : choice === 'one'
            ? { type: 'function', function: { name: tools[0] } }
            : choice,
      parallel_tool_calls: tools.length === 0 || choice === 'none' ? undefined : given.parallel,
    })
  })

test('chat → Messages → chat keeps every field that both formats have', () => {
  fc.assert(
    fc.property(chatBody, (body) => {
      expect(toChat(fromMessages(toMessages(fromChat(body))))).toEqual(body)
    }),
  )
})

/** Fields that one format cannot express: dropped, or rejected where `unsupported_by_worker` stands. */
const INEXPRESSIBLE: readonly (readonly [
  what: string,
  chat: Json,
  becomes: Json | 'unsupported_by_worker',
])[] = [
  ['several answers', { n: 2 }, 'unsupported_by_worker'],
  ['any JSON object', { response_format: { type: 'json_object' } }, 'unsupported_by_worker'],
  ['a regular expression', { regex: 'a' }, 'unsupported_by_worker'],
  ['a grammar', { ebnf: 'a' }, 'unsupported_by_worker'],
  ['log probabilities', { logprobs: true }, {}],
  ['a seed', { seed: 1 }, {}],
  ['penalties', { frequency_penalty: 1, presence_penalty: 1, repetition_penalty: 2 }, {}],
  ['a bias', { logit_bias: { 5: 1 } }, {}],
  ['a least probability', { min_p: 0.1 }, {}],
  ['the least number of tokens', { min_tokens: 1 }, {}],
  ['stop tokens', { stop_token_ids: [1] }, {}],
  ['a temperature above 1', { temperature: 2 }, { temperature: 1 }],
  ['a key for caches', { prompt_cache_key: 'k' }, {}],
  ['the name of a speaker', { messages: [{ role: 'user', content: 'x', name: 'n' }] }, {}],
  ['stop strings of white space', { stop: [' '] }, {}],
]

test.each(INEXPRESSIBLE)('Messages cannot express this field of chat: %s', (_what, more, becomes) => {
  const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
  const there = () => toMessages(fromChat({ ...body, ...more }))
  if (becomes === 'unsupported_by_worker') expect(there).toThrow(expect.objectContaining({ code: becomes }))
  else expect(toChat(fromMessages(there()))).toEqual({ ...body, ...becomes })
})

const DROPPED: readonly (readonly [what: string, messages: Json])[] = [
  ['marks for caches', { cache_control: { type: 'ephemeral' } }],
  ['rules for the context', { context_management: {} }],
  ['tiers, containers and regions', { service_tier: 'auto', container: 'c', inference_geo: 'eu' }],
  ['tools of the vendor', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  [
    'redacted thinking and blocks of server tools',
    {
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: [
            { type: 'redacted_thinking', data: 'd' },
            { type: 'server_tool_use', id: 's', name: 'n', input: {} },
            { type: 'text', text: 'y' },
          ],
        },
        { role: 'user', content: 'z' },
      ],
    },
  ],
]

test.each(DROPPED)('chat cannot express this field of Messages: %s', (_what, more) => {
  const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
  const chat = JSON.stringify(toChat(fromMessages({ ...body, ...more })))
  for (const word of [
    'cache_control',
    'context_management',
    'service_tier',
    'container',
    'web_search',
    'redacted',
    'server_tool',
  ])
    expect(chat).not.toContain(word)
})
