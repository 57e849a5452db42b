/** The answers of the SDKs, whole and as events: their types, and valid values where a type says too little. */
import type { CaseOptions } from './sdk-cases.ts'
import { type FormatName, shared } from './sdk-formats.ts'
import type { Json, SdkType } from './sdk-types.ts'

type Event = { readonly type: string } & Readonly<Record<string, Json>>

const COMPLETIONS = 'openai/resources/chat/completions/completions'
const RESPONSES = 'openai/resources/responses/responses'
const MESSAGES = '@anthropic-ai/sdk/resources/beta/messages/messages'

/** Streams are an object with their events. */
export const SDK_ANSWER_TYPES = {
  chat: [COMPLETIONS, 'ChatCompletion'],
  chatEvents: [COMPLETIONS, 'ChatCompletionChunk', 'events'],
  responses: [RESPONSES, 'Response'],
  responsesEvents: [RESPONSES, 'ResponseStreamEvent', 'events'],
  messages: [MESSAGES, 'BetaMessage'],
  messagesEvents: [MESSAGES, 'BetaRawMessageStreamEvent', 'events'],
} as const satisfies Readonly<Record<string, SdkType>>

const { parameters: _, schema: __, input_schema: ___, metadata: ____, ...plain } = shared
const values = {
  ...plain,
  id: 'item_1',
  model: 'm',
  index: 0,
  name: 'f',
  created: 1,
  created_at: 1,
  some: {},
}

/** What an object with events has beside them is no answer. */
const NO_MEMBER = '.'

const chatChoice = { index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }
const chat: CaseOptions = {
  body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [chatChoice] },
  values: { ...values, content: 'hi' },
  skipped: new Set(),
  around: {},
  beside: {},
  answer: { without: {} },
}

const chunk = (delta: Json, finish_reason: Json = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const aroundChunk = (...between: readonly Json[]) => [
  chunk({ role: 'assistant', content: 'hi' }),
  ...between,
  chunk({}, 'stop'),
]
const chatEvents: CaseOptions = {
  ...chat,
  skipped: new Set([NO_MEMBER]),
  values: {
    ...chat.values,
    'events.choices.finish_reason': null,
    'events.choices.delta.function_call': { name: 'f', arguments: '{}' },
    'events.choices.delta.tool_calls': [
      { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } },
    ],
  },
  body: { events: aroundChunk() },
  around: { events: (event) => aroundChunk(event) },
  answer: { without: { events: () => aroundChunk() } },
}

/** They say which item or part an event is about. */
const PLACES = [
  'item_id',
  'output_index',
  'sequence_number',
  'content_index',
  'summary_index',
  'annotation_index',
  'command_index',
]

/** Of requests, and repeated in the response. */
const REPEATED = ['instructions', 'prompt', 'tool_choice', 'tools']

const response = { id: 'r', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [] }
const responses: CaseOptions = {
  body: response,
  values: { ...values, output: [], object: 'response' },
  // Declarations in items are those of requests.
  skipped: new Set([...REPEATED, 'output.tools']),
  around: {},
  beside: {},
  answer: { without: {} },
}

/** Items of events that do not name it in their type. */
const ITEMS: readonly (readonly [event: RegExp, item: Readonly<Record<string, Json>>])[] = [
  [/output_text|refusal|content_part/, { type: 'message', role: 'assistant', content: [] }],
  [/reasoning/, { type: 'reasoning', summary: [] }],
  [/function_call/, { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }],
  [/custom_tool_call/, { type: 'custom_tool_call', call_id: 'call_1', name: 'g', input: 'x' }],
  [/some_new_kind|audio/, {}],
]

const OTHER_ITEM = /^response\.([a-z_]+_call|[a-z_]+)(?:_[a-z_]+)?\./

const added = (item: Json) => ({ type: 'response.output_item.added', output_index: 0, item })
const done = (item: Json) => ({ type: 'response.output_item.done', output_index: 0, item })

function completed(event: Json): Json {
  const { response: given, ...members } = event as Event
  return { ...members, response: { status: 'completed', ...(given as object) } }
}

/** @param isLeftOut what stands around the event alone */
function aroundResponseEvent(event: Json, isLeftOut: boolean): readonly Json[] {
  const { type, item } = event as Event
  const begin = { type: 'response.created', response: { ...response, status: 'in_progress' } }
  const end = { type: 'response.completed', response }
  const events = isLeftOut ? [] : [event]
  if (/^response\.(?:completed|incomplete|failed)$|^error$/.test(type))
    return isLeftOut ? [begin, end] : [begin, type === 'response.completed' ? completed(event) : event]
  if (/^response\.(?:created|queued|in_progress)$/.test(type)) return [...events, end]
  if (type === 'response.output_item.added')
    return [begin, ...events, ...(isLeftOut ? [] : [done(item)]), end]
  if (type === 'response.output_item.done')
    return [begin, ...(isLeftOut ? [] : [added(item)]), ...events, end]
  const named = ITEMS.find(([kind]) => kind.test(type))?.[1] ?? { type: OTHER_ITEM.exec(type)?.[1] ?? '' }
  if (named.type === undefined) return [begin, ...events, end]
  const whole = { id: 'item_1', status: 'completed', ...named }
  return [begin, added(whole), ...events, done(whole), end]
}

const responsesEvents: CaseOptions = {
  ...responses,
  body: { events: [{ type: 'response.completed', response }] },
  values: {
    ...responses.values,
    item_id: 'item_1',
    output_index: 0,
    content_index: 0,
    summary_index: 0,
    annotation_index: 0,
    command_index: 0,
  },
  // Each type is measured once: the response at its end.
  skipped: new Set([
    NO_MEMBER,
    ...PLACES,
    ...['created', 'queued', 'in_progress', 'failed', 'incomplete'].map(
      (name) => `events[response.${name}].response`,
    ),
    ...[...REPEATED, 'output'].map((name) => `events.response.${name}`),
    'events.item.tools',
  ]),
  around: { events: (event) => aroundResponseEvent(event, false) },
  answer: { without: { events: (event) => aroundResponseEvent(event, true) } },
}

const usage = { input_tokens: 1, output_tokens: 1 }
const message = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage,
}
const messages: CaseOptions = {
  body: message,
  values: { ...values, content: [], text: 'hi' },
  skipped: new Set(['tool_changes']),
  around: {},
  beside: {},
  answer: { without: {} },
}

/** Blocks of deltas that do not belong to a text. */
const BLOCKS: Readonly<Record<string, Json>> = {
  input_json_delta: { type: 'tool_use', id: 'call_1', name: 'f', input: {} },
  thinking_delta: { type: 'thinking', thinking: '', signature: '' },
  signature_delta: { type: 'thinking', thinking: '', signature: '' },
  compaction_delta: { type: 'compaction', content: null },
}

function aroundMessageEvent(event: Json, isLeftOut: boolean): readonly Json[] {
  const { type, delta } = event as Event
  const begin = { type: 'message_start', message: { ...message, stop_reason: null } }
  const last = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }
  const end = { type: 'message_stop' }
  const stop = { type: 'content_block_stop', index: 0 }
  const start = (block: Json) => ({ type: 'content_block_start', index: 0, content_block: block })
  const events = isLeftOut ? [] : [event]
  switch (type) {
    case 'message_start':
      return isLeftOut ? [begin, last, end] : [event, last, end]
    case 'message_delta':
      return isLeftOut ? [begin, last, end] : [begin, event, end]
    case 'message_stop':
      return [begin, last, ...(isLeftOut ? [end] : events)]
    case 'content_block_start':
      return [begin, ...(isLeftOut ? [] : [event, stop]), last, end]
    case 'content_block_stop':
      return [begin, start({ type: 'text', text: 'hi' }), ...(isLeftOut ? [stop] : events), last, end]
    case 'content_block_delta': {
      const block = BLOCKS[(delta as Event).type] ?? { type: 'text', text: '' }
      return [begin, start(block), ...events, stop, last, end]
    }
    default:
      return [begin, ...events, last, end]
  }
}

const messagesEvents: CaseOptions = {
  ...messages,
  // Streams begin without content and without a reason.
  skipped: new Set([
    NO_MEMBER,
    ...messages.skipped,
    'events[message_start].message.content',
    ...['content', 'stop_reason', 'stop_sequence'].map(
      (name) => `events[message_start].message[message].${name}`,
    ),
  ]),
  body: { events: [{ type: 'message_start', message }, { type: 'message_stop' }] },
  around: { events: (event) => aroundMessageEvent(event, false) },
  answer: { without: { events: (event) => aroundMessageEvent(event, true) } },
}

export const SDK_ANSWERS: Readonly<Record<FormatName, readonly [whole: CaseOptions, events: CaseOptions]>> = {
  chat: [chat, chatEvents],
  responses: [responses, responsesEvents],
  messages: [messages, messagesEvents],
}
