/**
 * Converts items for a worker that speaks the format: without the gateway's own members and without ids, which no worker
 * knows. Calls that the gateway ran become functions with their results.
 */
import type { HistoryItem, JsonObject } from '#kernel'
import { withoutPrivate } from '#shared'
import { findSummary, summaryMessage } from './compaction.ts'
import { isTranslatedType } from './foreign-items.ts'
import { GatewayCalls } from './gateway-calls.ts'
import type { Unsealer } from './sealed-text.ts'

/** The items have passed `toMessages`, which checks them. */
export function toNativeItems(items: readonly HistoryItem[], unsealer: Unsealer): JsonObject[] {
  const calls = new GatewayCalls()
  return items.flatMap((item) => toItems(item, calls, unsealer))
}

function toItems(item: HistoryItem, calls: GatewayCalls, unsealer: Unsealer): JsonObject[] {
  // Items of a worker are sent back to it unchanged.
  if (typeof item._workerId === 'string') return [{ ...withoutOwn(item), id: item._workerId }]
  const call = calls.read(item)
  if (call !== null) {
    const { id, name, arguments: args, result } = call
    return [
      { type: 'function_call', call_id: id, name, arguments: args },
      { type: 'function_call_output', call_id: id, output: result },
    ]
  }
  switch (item.type) {
    case 'reasoning':
      return toReasoning(item, unsealer)
    case 'compaction': {
      const summary = findSummary(item, unsealer)
      if (summary === null) return [withoutOwn(item)]
      const content = [{ type: 'input_text', text: summaryMessage(summary) }]
      return [{ type: 'message', role: 'user', content }]
    }
    case 'mcp_list_tools':
    case 'mcp_approval_request':
    case 'mcp_approval_response':
      return []
    default:
      return [withoutOwn(item)]
  }
}

/** Empty if the encrypted content cannot be decrypted, as in `toMessages`. */
function toReasoning(item: HistoryItem, unsealer: Unsealer): JsonObject[] {
  const { content, summary = [], encrypted_content: sealed, extra_content } = item
  const extra = extra_content == null ? {} : { extra_content }
  if (typeof sealed !== 'string')
    return [{ type: 'reasoning', summary, ...(content !== undefined && { content }), ...extra }]
  const opened = unsealer.open(sealed)
  if (opened === null) return []
  const { text, signature } = opened
  return signature === undefined
    ? [{ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text }], ...extra }]
    : [{ type: 'reasoning', summary, encrypted_content: signature, ...extra }]
}

/** Types that the gateway does not know keep their status. */
function withoutOwn(item: HistoryItem): JsonObject {
  const { id: _, status, ...rest } = withoutPrivate(item)
  return status === undefined || isTranslatedType(item.type) ? rest : { ...rest, status }
}
