/** Items of tools that the gateway runs, while they run. */
import type { BuiltInType, CalledTool, HistoryItem, ToolCallResult, ToolLoopEvent } from '#kernel'
import { parseBoundedText, withoutPrivate } from '#shared'
import { newId, newItemId } from '../item-ids.ts'
import type { Frames } from './frames.ts'
import { ItemFrames } from './item-frames.ts'
import type { OpenItem } from './open-item.ts'
import type { OutputWishes } from './output-wishes.ts'

type EventOf<Type extends ToolLoopEvent['type']> = Extract<ToolLoopEvent, { type: Type }>

export class ListItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #label: string

  constructor({ index, label }: EventOf<'list_started'>, frames: Frames | null) {
    this.#frames = new ItemFrames(index, newItemId('mcp_list_tools'), frames)
    this.#label = label
  }

  begin(): void {
    this.#frames.item('added', this.#value([]))
    this.#frames.send('response.mcp_list_tools.in_progress')
  }

  add(): void {}

  end(event: ToolLoopEvent): HistoryItem {
    const isWhole = event.type === 'list_done'
    this.#frames.send(`response.mcp_list_tools.${isWhole ? 'completed' : 'failed'}`)
    const item = isWhole
      ? { ...this.#value(event.tools.map(toWireTool)), _fingerprint: event.fingerprint }
      : { ...this.#value([]), error: (event as EventOf<'list_failed'>).error.message }
    this.#frames.item('done', withoutPrivate(item))
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value([])
  }

  #value(tools: readonly object[]): HistoryItem {
    return { id: this.#frames.id, type: 'mcp_list_tools', server_label: this.#label, tools }
  }
}

function toWireTool({ name, description, inputSchema, annotations }: EventOf<'list_done'>['tools'][number]) {
  return {
    name,
    ...(description !== null && { description }),
    input_schema: inputSchema,
    ...(annotations !== null && { annotations }),
  }
}

export class McpCallItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #tool: Extract<CalledTool, { kind: 'mcp' }>
  readonly #approvalId: string | null
  #arguments = ''

  constructor(
    index: number,
    tool: Extract<CalledTool, { kind: 'mcp' }>,
    approvalId: string | null,
    frames: Frames | null,
  ) {
    this.#frames = new ItemFrames(index, newItemId('mcp_call'), frames)
    this.#tool = tool
    this.#approvalId = approvalId
  }

  begin(): void {
    this.#frames.item('added', this.#value('in_progress', ''))
    this.#frames.send('response.mcp_call.in_progress')
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'call_arguments') {
      this.#arguments += event.delta
      this.#frames.send('response.mcp_call_arguments.delta', `"delta":${JSON.stringify(event.delta)}`)
    } else if (event.type === 'call_arguments_done') {
      this.#arguments = event.arguments
      this.#frames.send('response.mcp_call_arguments.done', `"arguments":${JSON.stringify(event.arguments)}`)
    }
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { result, arguments: args } = event as EventOf<'call_done'>
    this.#arguments = args
    this.#frames.send(`response.mcp_call.${result.status === 'completed' ? 'completed' : 'failed'}`)
    const item = { ...this.#value(result.status, result.output, result), _modelText: result.modelText }
    this.#frames.item('done', withoutPrivate(item))
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete', '')
  }

  #value(status: string, output: string, result?: ToolCallResult): HistoryItem {
    const error = result?.error ?? null
    return {
      id: this.#frames.id,
      type: 'mcp_call',
      status,
      server_label: this.#tool.label,
      name: this.#tool.name,
      arguments: this.#arguments,
      output,
      error: error === null ? null : toWireError(error),
      ...(this.#approvalId !== null && { approval_request_id: this.#approvalId }),
    }
  }
}

function toWireError({ type, code, message }: NonNullable<ToolCallResult['error']>): object {
  return type === 'mcp_tool_execution_error'
    ? { type, content: [{ type: 'text', text: message }] }
    : { type, code, message }
}

export class ApprovalItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #event: EventOf<'approval_requested'>

  constructor(event: EventOf<'approval_requested'>, frames: Frames | null) {
    this.#frames = new ItemFrames(event.index, newItemId('mcp_approval_request'), frames)
    this.#event = event
  }

  begin(): void {
    this.#frames.item('added', this.asFarAsItCame())
  }

  add(): void {}

  end(): HistoryItem {
    const item = this.asFarAsItCame()
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    const { label, name, arguments: args } = this.#event
    return { id: this.#frames.id, type: 'mcp_approval_request', server_label: label, name, arguments: args }
  }
}

/** Steps between the beginning and the end that have events of their own. */
const RUNNING: Readonly<Record<BuiltInType, string>> = {
  web_search: 'searching',
  file_search: 'searching',
  code_interpreter: 'interpreting',
}

export class BuiltInItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #type: BuiltInType
  readonly #wishes: OutputWishes
  readonly #container = newId('cntr')
  #arguments = ''

  constructor(index: number, type: BuiltInType, frames: Frames | null, wishes: OutputWishes) {
    this.#frames = new ItemFrames(index, newItemId(`${type}_call`), frames)
    this.#type = type
    this.#wishes = wishes
  }

  begin(): void {
    this.#frames.item('added', this.#value('in_progress'))
    this.#frames.send(`response.${this.#type}_call.in_progress`)
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'call_arguments_done') {
      this.#arguments = event.arguments
      if (this.#type !== 'code_interpreter') return
      const code = JSON.stringify(this.#word('code'))
      if (code !== '""') this.#frames.send('response.code_interpreter_call_code.delta', `"delta":${code}`)
      this.#frames.send('response.code_interpreter_call_code.done', `"code":${code}`)
    } else if (event.type === 'call_running')
      this.#frames.send(`response.${this.#type}_call.${RUNNING[this.#type]}`)
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { result, arguments: args } = event as EventOf<'call_done'>
    this.#arguments = args
    if (result.status === 'completed') this.#frames.send(`response.${this.#type}_call.completed`)
    const item = {
      ...this.#value(result.status, result),
      _modelText: result.modelText,
      _arguments: args,
    }
    this.#frames.item('done', withoutPrivate(item))
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete')
  }

  /** One argument of the call, where it is a text. */
  #word(name: string): string {
    try {
      const value = (parseBoundedText(this.#arguments || '{}') as Record<string, unknown> | null)?.[name]
      return typeof value === 'string' ? value : ''
    } catch {
      return ''
    }
  }

  #value(status: string, result?: ToolCallResult): HistoryItem {
    const head = { id: this.#frames.id, type: `${this.#type}_call`, status }
    if (this.#type === 'web_search') {
      const sources = this.#wishes.hasSources && result !== undefined ? { sources: sourcesOf(result) } : {}
      return { ...head, action: { type: 'search', query: this.#word('query'), ...sources } }
    }
    if (this.#type === 'file_search') {
      const query = this.#word('query')
      const isShown = this.#wishes.hasSearchResults && result !== undefined
      return { ...head, queries: query === '' ? [] : [query], results: isShown ? resultsOf(result) : null }
    }
    const isShown = this.#wishes.hasCodeOutputs && result !== undefined
    return {
      ...head,
      code: this.#word('code'),
      container_id: this.#container,
      outputs: isShown ? [{ type: 'logs', logs: result.modelText }] : null,
    }
  }
}

/** Addresses in what the tool gave. */
function sourcesOf({ output }: ToolCallResult): readonly object[] {
  const urls = new Set(output.match(/https?:\/\/[^\s"'<>)\]]{1,2000}/g) ?? [])
  return [...urls].slice(0, 100).map((url) => ({ type: 'url', url }))
}

function resultsOf({ output }: ToolCallResult): readonly object[] {
  return output === '' ? [] : [{ file_id: '', filename: '', score: 0, text: output, attributes: {} }]
}
