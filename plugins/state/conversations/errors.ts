/** Errors of the conversation routes. */
import { defineErrors } from '#kernel'

const client = { kind: 'bad_request', source: 'client' } as const

/** Values of clients are shown shortened. */
export const shown = (value: string) => JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)

export const conversationErrors = defineErrors('conversations', {
  json_parse_error: { ...client, text: () => 'the request body must be one JSON object' },
  missing_required_parameter: { ...client, text: (what: string, problem: string) => `${what} ${problem}` },
  invalid_type: { ...client, text: (what: string, problem: string) => `${what} ${problem}` },
  invalid_value: { ...client, text: (what: string, problem: string) => `${what} ${problem}` },
  invalid_metadata: { ...client, text: (what: string, problem: string) => `${what} ${problem}` },
  too_many_items: {
    ...client,
    text: (limit: number) => `no more than ${limit} items can be added at a time`,
  },
  message_content_empty: { ...client, text: (what: string) => `${what} has no content` },
  item_already_in_conversation: {
    ...client,
    text: (id: string) => `the item ${shown(id)} is already in the conversation`,
  },
  invalid_cursor: {
    ...client,
    text: (id: string) => `'after' must be the id of an item of this conversation (got ${shown(id)})`,
  },
  conversation_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no conversation has the id ${shown(id)}`,
  },
  item_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no item has the id ${shown(id)}`,
  },
})
