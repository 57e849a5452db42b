/** The calls of a model turn, the results of those that are not run, and the messages of a turn: the history with the current tool names, then what each iteration adds. */
import type { CalledTool, ChatMessage, ContentPart, NativeAnswer, NativeObject } from '#kernel'
import { safeName } from '../tools/exposed-names.ts'
import type { OfferedTool, OfferedTools } from './offered-tools.ts'

/**
 * Who runs the call. `function`: the client. `gateway`: the gateway. `approval`: the gateway after approval. `refused`: the
 * call is not run and hidden from clients; the model receives the reason.
 */
export type CallRoute =
  | { readonly kind: 'function' }
  | { readonly kind: 'gateway' | 'approval'; readonly tool: OfferedTool }
  | { readonly kind: 'refused'; readonly reason: 'unknown' | 'limit' | 'approval' }

export interface ModelCall {
  /** Id from the model, made unique within the turn. */
  readonly id: string
  /** As the model wrote it. */
  readonly name: string
  readonly route: CallRoute
  /** Its number in the turn; null for calls that clients do not see. */
  readonly index: number | null
  argumentText: string
  isWhole: boolean
  readonly extraContent: NativeObject | undefined
}

/** Output of the model in one iteration. */
export interface ModelTurn {
  readonly text: string
  readonly refusal: string
  readonly reasoning: string
  readonly signature: string | null
  readonly calls: readonly ModelCall[]
  /** The answer in the worker's own format; null if the worker does not provide it. */
  readonly native: NativeAnswer | null
  /** As of the event of the end. */
  readonly extraContent: NativeObject | undefined
}

/** Result of one call, as the model receives it. */
export interface ToolAnswer {
  readonly callId: string
  readonly text: string
  readonly isError: boolean
  readonly images: readonly { readonly mimeType: string; readonly data: string }[]
  /** The call waits for an answer of the client. */
  readonly isQuestion?: boolean
}

export const LIMIT_REACHED = 'The limit of tool calls for this request is reached. Answer with what you know.'
export const TOOL_NOT_AVAILABLE = 'This tool is no longer available.'
const NO_APPROVAL = "This tool needs a person's approval, which this client cannot give."
const MAX_NAME = 128

export function refuse(callId: string, text: string): ToolAnswer {
  return { callId, text, isError: true, images: [] }
}

/** Result for a refused call; null for other calls. */
export function refusalOf({ id, name, route }: ModelCall): ToolAnswer | null {
  if (route.kind !== 'refused') return null
  if (route.reason === 'limit') return refuse(id, LIMIT_REACHED)
  return refuse(
    id,
    route.reason === 'approval' ? NO_APPROVAL : `There is no tool named ${name.slice(0, MAX_NAME)}.`,
  )
}

/** Renames earlier calls of gateway tools to the current names of these tools. */
export function renameHistory(
  messages: readonly ChatMessage[],
  origins: ReadonlyMap<string, CalledTool>,
  offered: OfferedTools,
): ChatMessage[] {
  if (origins.size === 0) return [...messages]
  return messages.map((message) => {
    if (message.tool_calls === undefined) return message
    const calls = message.tool_calls.map((call) => {
      const origin = origins.get(call.id)
      if (origin === undefined) return call
      return { ...call, function: { ...call.function, name: currentName(origin, offered) } }
    })
    return { ...message, tool_calls: calls }
  })
}

/** Exposed name of a tool; a name derived from its origin if it no longer exists. */
export function currentName(origin: CalledTool, offered: OfferedTools): string {
  const found = offered.findOrigin(origin)
  return found?.exposedName ?? safeName(origin.kind === 'mcp' ? origin.name : origin.type)
}

export function toAssistantMessage(turn: ModelTurn): ChatMessage {
  const { engine, content = null } = turn.native ?? {}
  const calls = turn.calls.map(({ id, name, argumentText, extraContent }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: argumentText === '' ? '{}' : argumentText },
    ...(extraContent !== undefined && { extra_content: extraContent }),
  }))
  return {
    role: 'assistant',
    content: turn.text === '' ? null : turn.text,
    ...(turn.reasoning !== '' && { reasoning_content: turn.reasoning }),
    ...(turn.signature !== null && { reasoning_signature: turn.signature }),
    ...(turn.extraContent !== undefined && { extra_content: turn.extraContent }),
    ...(turn.refusal !== '' && { refusal: turn.refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(engine !== undefined && content !== null && { native: { engine, content } }),
  }
}

/** Results in the order of the calls; images follow in a user message. */
export function toToolMessages(answers: readonly ToolAnswer[]): ChatMessage[] {
  const messages: ChatMessage[] = answers.map(({ callId, text, isError }) => ({
    role: 'tool',
    tool_call_id: callId,
    content: text,
    ...(isError && { is_error: true }),
  }))
  const images = answers.flatMap((answer) => answer.images)
  if (images.length === 0) return messages
  const parts: ContentPart[] = images.map(({ mimeType, data }) => ({
    type: 'image_url',
    image_url: { url: `data:${mimeType};base64,${data}` },
    // The text of the result has the note.
    unseen: '',
  }))
  return [...messages, { role: 'user', content: parts }]
}
