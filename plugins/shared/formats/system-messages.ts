/** System messages in the form that all chat templates accept: one, and in front. */
import type { ChatMessage, ContentPart } from '#kernel'

const BREAK = '\n\n'

/**
 * Joins the system messages in front into one. Text of later ones keeps its place, as a note at the end of the user message
 * before it or in a user message of its own.
 *
 * @returns the same array if there is nothing to change
 */
export function withOneSystemMessage(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  if (!messages.some((message, index) => index > 0 && isSystem(message))) return messages
  const result: ChatMessage[] = []
  for (const message of messages) {
    const last = result.at(-1)
    if (!isSystem(message)) result.push(message)
    else if (last === undefined) result.push({ ...message, role: 'system' })
    else if (isSystem(last) && result.length === 1)
      result[0] = { ...last, content: joined(last.content, textOf(message.content)) }
    else {
      const note = `<system>\n${textOf(message.content)}\n</system>`
      if (last.role === 'user') result[result.length - 1] = { ...last, content: joined(last.content, note) }
      else result.push({ role: 'user', content: note })
    }
  }
  return result
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function textOf(content: ChatMessage['content']): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n')
}

function joined(content: ChatMessage['content'], text: string): string | readonly ContentPart[] {
  if (content === null || content === '') return text
  return typeof content === 'string' ? content + BREAK + text : [...content, { type: 'text', text }]
}
