/**
 * Converts items for a worker that speaks the format: without the gateway's own members and without ids, which no worker
 * knows. Calls that the gateway ran become functions with their results.
 */
import type { HistoryItem, JsonObject } from '#kernel'
import { denialText } from '../run/approvals.ts'
import { findSummary, summaryMessage } from './compaction.ts'
import type { Unsealer } from './sealed-text.ts'

const BUILT_IN = new Map([
  ['web_search_call', 'web_search'],
  ['code_interpreter_call', 'code_interpreter'],
  ['file_search_call', 'file_search'],
])

/** The items have passed `toMessages`, which checks them. */
export function toNativeItems(items: readonly HistoryItem[], unsealer: Unsealer): JsonObject[] {
  const requests = new Map<string, HistoryItem>()
  return items.flatMap((item) => {
    if (item.type === 'mcp_approval_request') requests.set(item.id, item)
    return toItems(item, requests, unsealer)
  })
}

function toItems(item: HistoryItem, requests: Map<string, HistoryItem>, unsealer: Unsealer): JsonObject[] {
  // Items of a worker are sent back to it unchanged.
  if (typeof item._workerId === 'string') return [{ ...withoutOwn(item), id: item._workerId }]
  switch (item.type) {
    case 'message':
    case 'function_call':
    case 'function_call_output':
      return [withoutOwn(item)]
    case 'reasoning':
      return toReasoning(item, unsealer)
    case 'compaction': {
      const summary = findSummary(item, unsealer)
      if (summary === null) return [withoutOwn(item)]
      const content = [{ type: 'input_text', text: summaryMessage(summary) }]
      return [{ type: 'message', role: 'user', content }]
    }
    case 'mcp_call':
    case '_hidden_call':
      return asFunction(item, item.name, item.arguments, item._modelText ?? (item.output || item.error))
    case 'mcp_approval_response': {
      const request = requests.get(String(item.approval_request_id))
      if (request === undefined || item.approve === true) return []
      return asFunction(request, request.name, request.arguments, denialText(item))
    }
    case 'mcp_list_tools':
    case 'mcp_approval_request':
      return []
    default:
      return toOther(item)
  }
}

/** Calls that the gateway ran become functions with their results. */
function toOther(item: HistoryItem): JsonObject[] {
  const builtIn = BUILT_IN.get(item.type)
  if (builtIn !== undefined && typeof item._modelText === 'string')
    return asFunction(item, builtIn, item._arguments ?? '{}', item._modelText)
  return [withoutOwn(item)]
}

function asFunction({ id }: HistoryItem, name: unknown, args: unknown, said: unknown): JsonObject[] {
  const output = typeof said === 'string' ? said : JSON.stringify(said ?? '')
  return [
    { type: 'function_call', call_id: id, name, arguments: args },
    { type: 'function_call_output', call_id: id, output },
  ]
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

function withoutOwn(item: HistoryItem): JsonObject {
  const { id: _, status: __, ...rest } = item
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith('_')))
}
