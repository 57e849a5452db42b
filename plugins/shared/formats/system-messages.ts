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
  for (let at = 0; at < messages.length; ) {
    // A run of system messages is joined at once: one by one, the parts of a long message would be copied for each.
    let end = at
    while (end < messages.length && isSystem(messages[end])) end++
    if (end > at) addSystem(result, messages.slice(at, end))
    else result.push(messages[end++])
    at = end
  }
  return result
}

function addSystem(result: ChatMessage[], run: readonly ChatMessage[]): void {
  const last = result.at(-1)
  if (last === undefined) {
    const content = run.length === 1 ? run[0].content : run.map((one) => textOf(one.content)).join(BREAK)
    result.push({ ...run[0], role: 'system', content })
    return
  }
  const note = run.map(({ content }) => `<system>\n${textOf(content)}\n</system>`).join(BREAK)
  if (last.role === 'user') result[result.length - 1] = { ...last, content: withText(last.content, note) }
  else result.push({ role: 'user', content: note })
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function textOf(content: ChatMessage['content']): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n')
}

function withText(content: ChatMessage['content'], text: string): string | readonly ContentPart[] {
  if (content === null || content === '') return text
  return typeof content === 'string' ? content + BREAK + text : [...content, { type: 'text', text }]
}
