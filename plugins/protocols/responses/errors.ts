/** Errors of the responses API: codes and messages that clients of the format know. */
import { defineErrors } from '#kernel'

/** Longer words of a client are shortened in messages. */
const MAX_SHOWN = 80

/** A value of the client's, fit for a message. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

const client = { kind: 'bad_request', source: 'client' } as const

export const responsesErrors = defineErrors('responses', {
  invalid_type: { ...client, text: (path: string, expected: string) => `'${path}' must be ${expected}` },
  invalid_value: { ...client, text: (path: string, problem: string) => `'${path}' ${problem}` },
  missing_required_parameter: { ...client, text: (path: string) => `'${path}' is required` },
  unsupported_parameter: { ...client, text: (path: string) => `'${path}' is not supported here` },
  input_tokens_not_supported: {
    ...client,
    text: (model: string) => `no tokenizer of the model '${shown(model)}' is known here`,
  },
  input_text_empty: { ...client, text: () => "'input' must not be empty" },
  input_items_empty: { ...client, text: () => "'input' must hold at least one item" },
  message_content_empty: { ...client, text: (path: string) => `'${path}' must not be empty` },
  unsupported_item_type: {
    ...client,
    text: (type: string) => `items of type '${type}' cannot be served by the workers of this model`,
  },
  unsupported_content_part: {
    ...client,
    text: (type: string) => `content of type '${type}' cannot be served here`,
  },
  unsupported_file_id: {
    ...client,
    text: () => 'there is no store of files here: send the content in place of a file id',
  },
  unknown_input_type: {
    ...client,
    text: (path: string, type: string) => `'${path}' is not known: '${type}'`,
  },
  duplicate_item: { ...client, text: (id: string) => `two different items have the id '${id}'` },
  referenced_item_not_found: {
    ...client,
    text: (id: string) =>
      `Item with id '${id}' not found. Items of responses made with store set to false are not kept.`,
  },
  missing_tool_output: {
    ...client,
    text: (callId: string) => `No tool output found for function call ${callId}.`,
  },
  orphan_tool_output: {
    ...client,
    text: (callId: string) => `No tool call found for function call output with call_id ${callId}.`,
  },
  invalid_encrypted_content: {
    ...client,
    text: () => 'the encrypted content was not made here, was made for somebody else, or was changed',
  },
  invalid_conversation_id: {
    ...client,
    text: (problem: string) => `'conversation' ${problem}`,
  },
  mutually_exclusive_parameters: {
    ...client,
    text: () => "'previous_response_id' and 'conversation' cannot be used together",
  },
  previous_response_not_found: {
    ...client,
    text: (id: string) => `Previous response with id '${id}' not found.`,
  },
  previous_response_in_progress: {
    ...client,
    text: (id: string) => `the previous response '${id}' has not ended yet`,
  },
  invalid_previous_response: {
    ...client,
    text: (id: string) => `the previous response '${id}' failed or was cancelled and cannot be continued`,
  },
  previous_response_chain_too_long: {
    ...client,
    text: () => 'the chain of previous responses is too long; begin a new one',
  },
  conversation_too_long: {
    ...client,
    text: () => 'the conversation is too long; begin a new one',
  },
  conversation_locked: {
    ...client,
    text: () => 'Another process is currently operating on this conversation. Please retry in a few seconds.',
  },
  conversation_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `Conversation with id '${id}' not found.`,
  },
  response_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `No response found with id '${id}'.`,
  },
  background_conflicts_with_stream: {
    ...client,
    text: () =>
      "'background' and 'stream' cannot be used together; follow the response with GET and stream=true",
  },
  background_requires_store: { ...client, text: () => "'background' needs 'store'" },
  background_not_supported: {
    ...client,
    text: () => 'background responses need a store; none is configured',
  },
  background_queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (limit: number) => `${limit} background responses wait already; try again later`,
  },
  invalid_metadata: { ...client, text: (problem: string) => `'metadata' ${problem}` },
  invalid_server_label: {
    ...client,
    text: () => 'a server label begins with a letter, followed by letters, digits, hyphens and underscores',
  },
  mcp_tool_duplicate_server_label: {
    ...client,
    text: (label: string) => `two tool servers have the label '${label}'`,
  },
  mcp_tool_conflicting_targets: {
    ...client,
    text: () => "only one of 'server_url' and 'connector_id' may be set",
  },
  tool_not_available: {
    ...client,
    text: (type: string) => `tools of type '${type}' cannot be run here`,
  },
  duplicate_tool_name: { ...client, text: (name: string) => `two functions have the name '${name}'` },
  tool_choice_requires_tools: { ...client, text: () => "'tool_choice' needs 'tools'" },
  tool_choice_function_not_found: {
    ...client,
    text: (name: string) => `'tool_choice' names '${name}', which is not among the tools`,
  },
  tool_choice_invalid_mode: { ...client, text: (mode: string) => `'tool_choice' is not known: '${mode}'` },
  tool_choice_tool_not_found: {
    ...client,
    text: (name: string) => `'tool_choice' names '${name}', which is not among the tools`,
  },
  json_schema_name_empty: { ...client, text: () => "'text.format.name' must not be empty" },
  approval_request_not_found: {
    ...client,
    text: (id: string) => `no approval request with id '${id}' waits for an answer`,
  },
  approval_already_answered: {
    ...client,
    text: (id: string) => `the approval request '${id}' was answered already`,
  },
  invalid_cursor: { ...client, text: (id: string) => `'after' names no item of this list: '${id}'` },
  cancellation_not_supported: {
    ...client,
    text: () => 'responses that are served over gRPC cannot be cancelled',
  },
  response_already_completed: { ...client, text: () => 'the response has ended already' },
  response_already_failed: { ...client, text: () => 'the response has failed already' },
  worker_aborted: {
    kind: 'bad_gateway',
    source: 'worker',
    text: () => 'the worker gave up before its answer was whole',
  },
  storage_error: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the response could not be stored',
  },
  server_restarted: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the gateway was restarted while it worked on this response',
  },
  websocket_connection_limit_reached: {
    ...client,
    text: () => 'the socket was open for as long as one may be; open another',
  },
  websocket_message_invalid: {
    ...client,
    text: (what: string) => what,
  },
})
