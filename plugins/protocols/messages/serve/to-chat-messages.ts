/** The conversation of a messages request as chat messages. */
import type { ChatMessage, ContentPart } from '#kernel'
import type { MessagesRequest } from '../wire.ts'
import { toAssistantMessages } from './assistant-turn.ts'
import type { MediaOptions } from './media-parts.ts'
import { systemText } from './system-text.ts'
import { toUserMessages } from './user-turn.ts'

/** @throws invalid_field (400) naming the block that cannot be translated */
export function toChatMessages({ system, messages }: MessagesRequest, options: MediaOptions): ChatMessage[] {
  const chat: ChatMessage[] = []
  const own = new OwnParts()
  const add = (message: ChatMessage) => {
    const last = chat.at(-1)
    const merged = last === undefined ? null : merge(last, message, own)
    if (merged === null) chat.push(message)
    else chat[chat.length - 1] = merged
  }
  if (system != null) {
    const content = systemText(system, 'system')
    if (content !== '') add({ role: 'system', content })
  }
  for (const [index, { role, content }] of messages.entries()) {
    const path = `messages.${index}.content`
    if (role === 'system') add({ role, content: systemText(content, path) })
    else
      for (const message of (role === 'user' ? toUserMessages : toAssistantMessages)(content, path, options))
        add(message)
  }
  return chat
}

/** Neighbours of one role are one turn: the format's own service takes them so, and many templates demand it. */
function merge(first: ChatMessage, second: ChatMessage, own: OwnParts): ChatMessage | null {
  if (first.role !== second.role || first.role === 'tool') return null
  if (first.role === 'user' || first.role === 'system')
    return { role: first.role, content: joinContent(first.content, second.content, own) }
  if (first.tool_calls !== undefined || first.reasoning_content !== undefined) return null
  if (second.reasoning_content !== undefined) return null
  return { ...second, content: joinContent(first.content, second.content, own) }
}

type Content = ChatMessage['content']

/** Lists that were made here: many neighbours grow one list, in place of a copy each. */
class OwnParts {
  readonly #lists = new WeakSet<readonly ContentPart[]>()

  join(first: readonly ContentPart[], second: readonly ContentPart[]): readonly ContentPart[] {
    const parts = this.#lists.has(first) ? (first as ContentPart[]) : first.slice()
    for (const part of second) parts.push(part)
    this.#lists.add(parts)
    return parts
  }
}

function joinContent(first: Content, second: Content, own: OwnParts): Content {
  if (first === null || first === '') return second
  if (second === null || second === '') return first
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n${second}`
  return own.join(toParts(first), toParts(second))
}

function toParts(content: string | readonly ContentPart[]): readonly ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}
