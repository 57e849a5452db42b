/** Items of tools that the gateway runs, while they run. */
import type { BuiltInType, CalledTool, GenerationEvent, HistoryItem, ToolCallResult } from '#kernel'
import { newId, parseCallArguments } from '#shared'
import type { EventEncoder } from './event-encoder.ts'
import { type EventOf, OpenItem, type OutputOptions } from './open-item.ts'

export class ListItem extends OpenItem {
  readonly #label: string

  constructor(index: number, label: string, events: EventEncoder | null) {
    super(index, 'mcp_list_tools', events)
    this.#label = label
  }

  begin(): void {
    this.encoder.added(this.#value([]))
    this.encoder.state('in_progress')
  }

  end(event: EventOf<'list_done' | 'list_failed'>): HistoryItem {
    const isWhole = event.type === 'list_done'
    this.encoder.state(isWhole ? 'completed' : 'failed')
    return this.done(
      isWhole
        ? { ...this.#value(event.tools.map(toWireTool)), _fingerprint: event.fingerprint }
        : { ...this.#value([]), error: event.error.message },
    )
  }

  incomplete(): HistoryItem {
    return this.#value([])
  }

  #value(tools: readonly object[]): HistoryItem {
    return { id: this.encoder.id, type: 'mcp_list_tools', server_label: this.#label, tools }
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

export class McpCallItem extends OpenItem {
  readonly #tool: Extract<CalledTool, { kind: 'mcp' }>
  readonly #approvalId: string | null
  #arguments = ''

  constructor(
    index: number,
    tool: Extract<CalledTool, { kind: 'mcp' }>,
    approvalId: string | null,
    events: EventEncoder | null,
  ) {
    super(index, 'mcp_call', events)
    this.#tool = tool
    this.#approvalId = approvalId
  }

  begin(): void {
    this.encoder.added(this.#value('in_progress', ''))
    this.encoder.state('in_progress')
  }

  override add(event: GenerationEvent): void {
    if (event.type !== 'tool_arguments') return
    this.#arguments += event.delta
    this.encoder.argumentsDelta({ delta: event.delta })
  }

  override argumentsDone(args: string): void {
    this.encoder.argumentsDone(args)
  }

  end({ result, arguments: args }: EventOf<'call_done'>): HistoryItem {
    this.#arguments = args
    this.encoder.state(result.status === 'completed' ? 'completed' : 'failed')
    return this.done({ ...this.#value(result.status, result.output, result), _modelText: result.modelText })
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete', '')
  }

  #value(status: string, output: string, result?: ToolCallResult): HistoryItem {
    const error = result?.error ?? null
    return {
      id: this.encoder.id,
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

/** The state between the beginning and the end. */
const RUNNING: Readonly<Record<BuiltInType, string>> = {
  web_search: 'searching',
  file_search: 'searching',
  code_interpreter: 'interpreting',
}

export class BuiltInItem extends OpenItem {
  readonly #type: BuiltInType
  readonly #options: OutputOptions
  readonly #container = newId('cntr')
  #arguments = ''

  constructor(index: number, type: BuiltInType, events: EventEncoder | null, options: OutputOptions) {
    super(index, `${type}_call`, events)
    this.#type = type
    this.#options = options
  }

  begin(): void {
    this.encoder.added(this.#value('in_progress'))
    this.encoder.state('in_progress')
  }

  override add(event: GenerationEvent): void {
    if (event.type === 'call_running') this.encoder.state(RUNNING[this.#type])
  }

  override argumentsDone(args: string): void {
    this.#arguments = args
    if (this.#type === 'code_interpreter') this.encoder.wholeMember('code', this.#argument('code'))
  }

  end({ result, arguments: args }: EventOf<'call_done'>): HistoryItem {
    this.#arguments = args
    if (result.status === 'completed') this.encoder.state('completed')
    return this.done({
      ...this.#value(result.status, result),
      _modelText: result.modelText,
      _arguments: args,
    })
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete')
  }

  /** One argument of the call; empty if it is not a string. */
  #argument(name: string): string {
    const value = parseCallArguments(this.#arguments)[name]
    return typeof value === 'string' ? value : ''
  }

  #value(status: string, result?: ToolCallResult): HistoryItem {
    const head = { id: this.encoder.id, type: `${this.#type}_call`, status }
    if (this.#type === 'web_search') {
      const sources = this.#options.hasSources && result !== undefined ? { sources: sourcesOf(result) } : {}
      return { ...head, action: { type: 'search', query: this.#argument('query'), ...sources } }
    }
    if (this.#type === 'file_search') {
      const query = this.#argument('query')
      const isShown = this.#options.hasSearchResults && result !== undefined
      return { ...head, queries: query === '' ? [] : [query], results: isShown ? resultsOf(result) : null }
    }
    const isShown = this.#options.hasCodeOutputs && result !== undefined
    return {
      ...head,
      code: this.#argument('code'),
      container_id: this.#container,
      outputs: isShown ? [{ type: 'logs', logs: result.modelText }] : null,
    }
  }
}

/** URLs in the output of the tool. */
function sourcesOf({ output }: ToolCallResult): readonly object[] {
  const urls = new Set(output.match(/https?:\/\/[^\s"'<>)\]]{1,2000}/g) ?? [])
  return [...urls].slice(0, 100).map((url) => ({ type: 'url', url }))
}

function resultsOf({ output }: ToolCallResult): readonly object[] {
  return output === '' ? [] : [{ file_id: '', filename: '', score: 0, text: output, attributes: {} }]
}
