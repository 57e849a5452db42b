/** Errors of the responses API: codes and messages that clients of the format know. */
import { defineErrors, shortValue } from '#kernel'
import { clientError } from '#shared'

/** Longer values of a client are shortened in messages. */
const MAX_SHOWN = 80

/** A value of the client's, fit for a message. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

const ofMember = clientError((path: string, problem: string) => `'${path}' ${problem}`)

export const responsesErrors = defineErrors('responses', {
  invalid_type: ofMember,
  invalid_value: ofMember,
  missing_required_parameter: clientError((path: string) => `'${path}' is required`),
  unsupported_parameter: clientError((path: string) => `'${path}' is not supported here`),
  input_tokens_not_supported: clientError(
    (model: string) => `no tokenizer is loaded for the model '${shown(model)}'`,
  ),
  input_text_empty: clientError(() => "'input' must not be empty"),
  input_items_empty: clientError(() => "'input' must hold at least one item"),
  message_content_empty: clientError((path: string) => `'${path}' must not be empty`),
  unsupported_item_type: clientError(
    (type: string) => `items of type '${shown(type)}' cannot be served by the workers of this model`,
  ),
  unsupported_content_part: clientError(
    (type: string) => `content of type '${shown(type)}' is not supported`,
  ),
  unsupported_file_id: clientError(
    () => 'files cannot be stored here: send the content instead of a file id',
  ),
  duplicate_item: clientError((id: string) => `two different items have the id '${shown(id)}'`),
  referenced_item_not_found: clientError(
    (id: string) =>
      `Item with id '${shown(id)}' not found. Items of responses made with store set to false are not kept.`,
  ),
  missing_tool_output: clientError((callId: string) => `No tool output found for function call ${callId}.`),
  orphan_tool_output: clientError(
    (callId: string) => `No tool call found for function call output with call_id ${callId}.`,
  ),
  invalid_encrypted_content: clientError(
    () =>
      'the encrypted content cannot be opened: it was made by another gateway or for another tenant, or was changed',
  ),
  invalid_conversation_id: clientError((problem: string) => `'conversation' ${problem}`),
  mutually_exclusive_parameters: clientError(
    () => "'previous_response_id' and 'conversation' cannot be used together",
  ),
  previous_response_not_found: clientError(
    (id: string) => `Previous response with id '${shown(id)}' not found.`,
  ),
  previous_response_in_progress: clientError(
    (id: string) => `the previous response '${id}' has not ended yet`,
  ),
  invalid_previous_response: clientError(
    (id: string) => `the previous response '${id}' failed or was cancelled and cannot be continued`,
  ),
  previous_response_chain_too_long: clientError(
    () => 'the chain of previous responses is too long; begin a new one',
  ),
  conversation_too_long: clientError(() => 'the conversation is too long; begin a new one'),
  conversation_locked: clientError(
    () => 'Another process is currently operating on this conversation. Please retry in a few seconds.',
  ),
  conversation_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `Conversation with id '${shown(id)}' not found.`,
  },
  response_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `No response found with id '${id}'.`,
  },
  background_conflicts_with_stream: clientError(
    () => "'background' and 'stream' cannot be used together; follow the response with GET and stream=true",
  ),
  background_requires_store: clientError(() => "'background' needs 'store'"),
  background_not_supported: clientError(
    () => 'background responses need the history plugin, which is disabled',
  ),
  background_queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (limit: number) =>
      `${limit} background responses of this tenant are queued already; try again later`,
  },
  invalid_metadata: ofMember,
  invalid_server_label: clientError(
    (path: string, label: string) =>
      `'${path}' must begin with a letter, followed by letters, digits, hyphens and underscores (got '${shown(label)}')`,
  ),
  mcp_tool_duplicate_server_label: clientError(
    (label: string) => `two tool servers have the label '${shown(label)}'`,
  ),
  mcp_tool_conflicting_targets: clientError(() => "only one of 'server_url' and 'connector_id' may be set"),
  tool_not_available: clientError((type: string) => `tools of type '${shown(type)}' are not available`),
  duplicate_tool_name: clientError((name: string) => `two functions have the name '${shown(name)}'`),
  tool_choice_requires_tools: clientError(() => "'tool_choice' needs 'tools'"),
  tool_choice_function_not_found: clientError(
    (name: string) => `'tool_choice' names '${name}', which is not among the tools`,
  ),
  tool_choice_invalid_mode: clientError(
    (mode: string) => `'tool_choice' must be auto, none, required or an object (got '${mode}')`,
  ),
  tool_choice_tool_not_found: clientError(
    (name: string) => `'tool_choice' names '${name}', which is not among the tools`,
  ),
  json_schema_name_empty: clientError(() => "'text.format.name' must not be empty"),
  approval_request_not_found: clientError(
    (id: string) => `no approval request with the id '${shown(id)}' is open`,
  ),
  approval_already_answered: clientError(
    (id: string) => `the approval request '${shown(id)}' was answered already`,
  ),
  invalid_cursor: clientError((id: string) => `'after' must be the id of an item of this list (got '${id}')`),
  cancellation_not_supported: clientError(() => 'responses that are served over gRPC cannot be cancelled'),
  response_already_completed: clientError(() => 'the response has ended already'),
  response_already_failed: clientError(() => 'the response has failed already'),
  key_not_valid: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'the key of the request has expired or was revoked before its response was generated',
  },
  storage_error: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the response could not be stored',
  },
  server_restarted: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the gateway was restarted while this response was in progress',
  },
  websocket_connection_limit_reached: clientError(
    () => 'the WebSocket has reached its maximum age; open another',
  ),
  websocket_message_invalid: clientError((what: string) => what),
})

/** @param got the wrong value, which is shown in short; default: none @throws invalid_value (400) */
export function wrongValue(path: string, problem: string, got?: unknown): never {
  const value = shortValue(got)
  const text = value === null ? problem : `${problem} (got ${value})`
  throw responsesErrors.invalid_value.with({ param: path }, path, text)
}

/** @throws missing_required_parameter (400) */
export function missing(path: string): never {
  throw responsesErrors.missing_required_parameter.with({ param: path }, path)
}
