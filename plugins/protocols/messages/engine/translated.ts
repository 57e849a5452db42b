/** Members of a worker's message that clients get: of other formats, and of the format itself. */
import { TranslatedKinds, type Translation } from '#shared'

/** Of a whole message, and of the events of a stream. */
export interface MessageTranslation {
  readonly message: Translation
  readonly events: Translation
}

const block = { type: true, extra_content: true } as const

/** Blocks of other kinds are left out. */
const BLOCKS = new TranslatedKinds(
  {
    text: { ...block, text: true },
    thinking: { ...block, thinking: true, signature: true },
    tool_use: { ...block, id: true, name: true, input: true },
  },
  null,
)

/** Deltas of other kinds are left out. */
const DELTAS = new TranslatedKinds(
  {
    text_delta: { type: true, text: true },
    thinking_delta: { type: true, thinking: true },
    signature_delta: { type: true, signature: true },
    input_json_delta: { type: true, partial_json: true },
  },
  null,
)

const MESSAGE = {
  id: true,
  type: true,
  role: true,
  model: true,
  content: BLOCKS,
  stop_reason: true,
  stop_sequence: true,
  delta: { stop_reason: true, stop_sequence: true },
  usage: {
    input_tokens: true,
    output_tokens: true,
    cache_creation: true,
    cache_creation_input_tokens: true,
    cache_read_input_tokens: true,
    output_tokens_details: { thinking_tokens: true },
    service_tier: true,
  },
} as const

/** Events of other kinds are left out. */
const EVENTS = new TranslatedKinds(
  {
    message_start: { type: true, message: MESSAGE },
    content_block_start: { type: true, index: true, content_block: BLOCKS },
    content_block_delta: { type: true, index: true, delta: DELTAS },
    content_block_stop: { type: true, index: true },
    message_delta: MESSAGE,
    message_stop: { type: true },
    ping: true,
  },
  null,
)

export const FOREIGN: MessageTranslation = { message: MESSAGE, events: EVENTS }

/** Other blocks pass as they are, as do the other members of the message. */
const NATIVE_BLOCKS = new TranslatedKinds(
  {
    text: { ...block, text: true, citations: true },
    thinking: { ...block, thinking: true, signature: true },
  },
  true,
)

const NATIVE_DELTAS = new TranslatedKinds(
  {
    text_delta: { type: true, text: true },
    thinking_delta: { type: true, thinking: true },
    signature_delta: { type: true, signature: true },
    input_json_delta: { type: true, partial_json: true },
    citations_delta: { type: true, citation: true },
  },
  null,
)

export const NATIVE: MessageTranslation = {
  message: { content: NATIVE_BLOCKS },
  events: new TranslatedKinds(
    {
      message_start: { type: true, message: true },
      content_block_start: { type: true, index: true, content_block: NATIVE_BLOCKS },
      content_block_delta: { type: true, index: true, delta: NATIVE_DELTAS },
      content_block_stop: { type: true, index: true },
      message_delta: true,
      message_stop: { type: true },
      ping: true,
    },
    null,
  ),
}
