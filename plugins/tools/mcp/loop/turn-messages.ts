/** The messages of a turn: the history with the current tool names, then the messages of each iteration. */
import type { CallOrigin, ChatMessage, ContentPart } from '#kernel'
import { safeName } from '../tools/exposed-names.ts'
import type { ModelTurn, ToolAnswer } from './model-call.ts'
import type { OfferedTools } from './offered-tools.ts'

/** Renames earlier calls of gateway tools to the current names of these tools. */
export function renameHistory(
  messages: readonly ChatMessage[],
  origins: ReadonlyMap<string, CallOrigin>,
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
export function currentName(origin: CallOrigin, offered: OfferedTools): string {
  const found = offered.findOrigin(origin)
  return found?.exposedName ?? safeName(origin.kind === 'mcp' ? origin.name : origin.type)
}

export function toAssistantMessage(turn: ModelTurn): ChatMessage {
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
    ...(turn.native !== null && { native: turn.native }),
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
