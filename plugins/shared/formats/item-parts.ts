/**
 * Items of a client as they are stored: texts become parts, and parts get the members on which readers of the format rely. All
 * other members are the client's own. @source OpenAI API reference, Responses and Conversations
 */
import type { HistoryItem, JsonObject } from '#kernel'
import { withoutPrivate } from '../store/client-items.ts'
import { newItemId } from './ids.ts'
import type { InputItem } from './response-items.ts'

type Part = { readonly type?: string | null; readonly [member: string]: unknown }

const ID = /^[A-Za-z0-9_-]{1,128}$/

/** @param item checked by its schema @returns without null members and members of the gateway */
export function toStoredItem(item: Exclude<InputItem, { type: 'item_reference' }>): HistoryItem {
  const { type, id } = item
  return { ...withParts(item), id: typeof id === 'string' && ID.test(id) ? id : newItemId(type), type }
}

function withParts(item: InputItem): JsonObject {
  const whole = withoutNulls(withoutPrivate(item as HistoryItem))
  switch (item.type) {
    case 'message': {
      const isOutput = item.role === 'assistant'
      return { ...whole, content: toParts(item.content, isOutput ? 'output_text' : 'input_text') }
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return typeof item.output === 'string'
        ? whole
        : { ...whole, output: toParts(item.output, 'input_text') }
    case 'reasoning':
      return {
        ...whole,
        summary: toParts(item.summary ?? [], 'summary_text'),
        ...(item.content && { content: toParts(item.content, 'reasoning_text') }),
      }
    default:
      return whole
  }
}

/** @param kind of a text without a type */
function toParts(content: string | readonly Part[], kind: string): JsonObject[] {
  const parts = typeof content === 'string' ? [{ type: kind, text: content }] : content
  return parts.map((part) => {
    const type = part.type == null || part.type === 'text' ? kind : part.type
    const defaults = type === 'output_text' ? { annotations: [], logprobs: [] } : undefined
    return { type, ...defaults, ...withoutNulls(part), ...(type !== part.type && { type }) }
  })
}

function withoutNulls(members: JsonObject): JsonObject {
  if (!Object.values(members).includes(null)) return members
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}
