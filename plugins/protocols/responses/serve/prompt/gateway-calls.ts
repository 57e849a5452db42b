/** Calls in the history that the gateway ran or that the user denied, with their results as the model gets them. */
import type { BuiltInType, CalledTool, HistoryItem } from '#kernel'
import { isQuestion } from '../approvals.ts'

export interface GatewayCall {
  readonly id: string
  readonly origin: CalledTool
  readonly name: string
  readonly arguments: string
  readonly result: string
}

const BUILT_IN: ReadonlyMap<string, BuiltInType> = new Map([
  ['web_search_call', 'web_search'],
  ['code_interpreter_call', 'code_interpreter'],
  ['file_search_call', 'file_search'],
])

export class GatewayCalls {
  readonly #requests = new Map<string, HistoryItem>()

  /** @param item each item of the history, in order @returns null for other items, and for calls whose result was not stored */
  read(item: HistoryItem): GatewayCall | null {
    switch (item.type) {
      case 'mcp_approval_request':
        this.#requests.set(item.id, item)
        return null
      case 'mcp_approval_response': {
        // An allowed call follows as one that was run, and so does one whose question was answered.
        const request = this.#requests.get(String(item.approval_request_id))
        if (request === undefined || isQuestion(request)) return null
        return item.approve === true ? null : toMcpCall(request, denialText(item))
      }
      case 'mcp_call':
      case '_hidden_call':
        return toMcpCall(item, String(item._modelText ?? (item.output || errorText(item.error))))
    }
    const type = BUILT_IN.get(item.type)
    const { id, _modelText: result, _arguments: args } = item
    if (type === undefined || typeof result !== 'string') return null
    return { id, origin: { kind: 'built_in', type }, name: type, arguments: String(args ?? '{}'), result }
  }
}

function toMcpCall(
  { id, server_label, name: given, arguments: args }: HistoryItem,
  result: string,
): GatewayCall {
  const name = String(given)
  const origin = { kind: 'mcp', label: String(server_label), name } as const
  return { id, origin, name, arguments: String(args), result }
}

function denialText({ reason }: HistoryItem): string {
  return `The user did not allow this call${typeof reason === 'string' ? `: ${reason}` : ''}`
}

function errorText(error: unknown): string {
  if (error === undefined || error === null) return ''
  return typeof error === 'string' ? error : JSON.stringify(error)
}
