/**
 * One attempt of a generation, with names of functions and ids of calls within the limits of cloud services. Other engines
 * write ids such as `functions.f:0`, and clients declare names of any length: both are shortened with a digest for such a
 * service, the same way in every request, and names come back by the request's own tools.
 */
import {
  type ChatMessage,
  type EngineAdapter,
  type EngineAttempt,
  type EngineQuirks,
  type GenerationRequest,
  isObject,
  type NativeRequest,
  type PreparedPrompt,
  type RelayContext,
  type ToolChoice,
  type WorkerEntry,
} from '#kernel'
import { MAX_TOOL_NAME, uuidV7, withDigest } from '#shared'

/** Longest id of a call: OpenAI takes 40 characters in chats and 64 in Responses. */
const MAX_CALL_ID = 40
const ACCEPTED = /^[A-Za-z0-9_-]+$/
const NOT_ACCEPTED = /[^A-Za-z0-9_-]/g

interface FittedRequest {
  readonly request: GenerationRequest
  /** The client's names of functions by those that the worker got in their place. */
  readonly names: ReadonlyMap<string, string>
}

const NO_NAMES: ReadonlyMap<string, string> = new Map()

/** One attempt of a generation at the picked worker, for its engine adapter. */
export class WorkerAttempt implements EngineAttempt, FittedRequest {
  readonly request: GenerationRequest
  readonly names: ReadonlyMap<string, string>
  readonly model: string
  readonly prepared: PreparedPrompt | null
  readonly worker: WorkerEntry
  readonly quirks: EngineQuirks
  readonly stream: boolean
  readonly ctx: RelayContext
  readonly adapter: EngineAdapter
  #id: string | null = null

  constructor(
    {
      request,
      quirks,
      stream,
      ctx,
    }: Pick<EngineAttempt, 'request' | 'quirks' | 'stream'> & { readonly ctx: RelayContext },
    adapter: EngineAdapter,
    prepared: PreparedPrompt | null,
    worker: WorkerEntry,
    model: string,
  ) {
    const fitted = hasNameLimits(worker, adapter) ? fitNames(request) : null
    this.request = fitted?.request ?? request
    this.names = fitted?.names ?? NO_NAMES
    this.quirks = quirks
    this.stream = stream
    this.ctx = ctx
    this.adapter = adapter
    this.prepared = prepared
    this.worker = worker
    this.model = model
  }

  get id(): string {
    this.#id ??= `${this.ctx.requestId}-${uuidV7()}`
    return this.#id
  }
}

/** True for OpenAI, and for the Messages format, which has such limits itself. @source vendors' API references */
function hasNameLimits({ provider }: WorkerEntry, { name }: EngineAdapter): boolean {
  return provider === 'openai' || name === 'messages'
}

export function fitNames(request: GenerationRequest): FittedRequest {
  const { prompt, tools, toolChoice, native } = request
  const names = new Map<string, string>()
  const fittedTools = tools.map((tool) => {
    const name = fitName(tool.function.name)
    if (name === tool.function.name) return tool
    names.set(name, tool.function.name)
    return { ...tool, function: { ...tool.function, name } }
  })
  return {
    names,
    request: {
      ...request,
      tools: fittedTools,
      toolChoice: toolChoice === null ? null : fitChoice(toolChoice),
      prompt: prompt.kind === 'chat' ? { kind: 'chat', messages: prompt.messages.map(fitMessage) } : prompt,
      ...(native !== undefined && { native: fitNative(native) }),
    },
  }
}

function fitName(name: string): string {
  return withinLimit(name, MAX_TOOL_NAME)
}

function fitId(id: string): string {
  return withinLimit(id, MAX_CALL_ID)
}

function withinLimit(text: string, most: number): string {
  if (text.length <= most && ACCEPTED.test(text)) return text
  return withDigest(text.replace(NOT_ACCEPTED, '_'), text, most)
}

function fitChoice(choice: ToolChoice): ToolChoice {
  if (choice.mode === 'function') return { ...choice, name: fitName(choice.name) }
  return choice.mode === 'allowed' ? { ...choice, names: choice.names.map(fitName) } : choice
}

function fitMessage(message: ChatMessage): ChatMessage {
  const { tool_calls: calls, tool_call_id: id } = message
  if (calls === undefined && id === undefined) return message
  return {
    ...message,
    ...(id !== undefined && { tool_call_id: fitId(id) }),
    ...(calls !== undefined && {
      tool_calls: calls.map((call) => ({
        ...call,
        id: fitId(call.id),
        function: { ...call.function, name: fitName(call.function.name) },
      })),
    }),
  }
}

/** Its tools are of types that only the service knows, with names that it accepts. */
function fitNative(native: NativeRequest): NativeRequest {
  return { ...native, prompt: () => native.prompt().map(fitItem) }
}

/** An item of the Responses format, or a message of the Messages format with its blocks. */
function fitItem(item: unknown): unknown {
  if (!isObject(item)) return item
  const { type, id, name, namespace, call_id: callId, tool_use_id: useId, content } = item
  const fitted: Record<string, unknown> = { ...item }
  if (typeof callId === 'string') fitted.call_id = fitId(callId)
  if (type === 'tool_result' && typeof useId === 'string') fitted.tool_use_id = fitId(useId)
  if (type === 'tool_use' && typeof id === 'string') fitted.id = fitId(id)
  const isFunction = type === 'tool_use' || (type === 'function_call' && typeof namespace !== 'string')
  if (isFunction && typeof name === 'string') fitted.name = fitName(name)
  if (item.role !== undefined && Array.isArray(content)) fitted.content = content.map(fitItem)
  return fitted
}
