/** Messages as every engine accepts them: the order of roles, and the text in place of an image that the engine does not see. */
import type { ChatMessage, ContentPart } from '#kernel'

const BREAK = '\n\n'

/**
 * Joins the system messages in front into one, and neighbouring user messages of one name into one. Text of later system
 * messages keeps its place, as a note in a user message.
 *
 * @returns the same array if there is nothing to change
 */
export function withStrictRoles(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const isStrict = messages.every((message, index) => index === 0 || !continues(messages[index - 1], message))
  if (isStrict) return messages
  const result: ChatMessage[] = []
  // A run is joined at once: one by one, the parts of a long message would be copied for each.
  for (let at = 0; at < messages.length; ) {
    const isFirst = at === 0
    let end = at + 1
    while (end < messages.length && isOneRun(messages[at], messages[end], isFirst)) end++
    const run = messages.slice(at, end)
    if (isFirst && isSystem(run[0])) result.push(toSystem(run))
    else result.push(isUserSide(run[0]) ? toUser(run) : run[0])
    at = end
  }
  return result
}

/** True if the second message cannot follow the first unchanged. */
function continues(first: ChatMessage, second: ChatMessage): boolean {
  return isSystem(second) || (first.role === 'user' && second.role === 'user' && first.name === second.name)
}

function isOneRun(first: ChatMessage, next: ChatMessage, isFront: boolean): boolean {
  if (isFront && isSystem(first)) return isSystem(next)
  if (!isUserSide(first)) return false
  return isSystem(next) || (next.role === 'user' && next.name === first.name)
}

function toSystem(run: readonly ChatMessage[]): ChatMessage {
  const content = run.length === 1 ? run[0].content : run.map((one) => textOf(one.content)).join(BREAK)
  return { ...run[0], role: 'system', content }
}

function toUser(run: readonly ChatMessage[]): ChatMessage {
  const [first] = run
  if (run.length === 1 && first.role === 'user') return first
  const parts: ContentPart[] = []
  let texts: string[] = []
  for (const message of run) {
    const content = isSystem(message) ? `<system>\n${textOf(message.content)}\n</system>` : message.content
    if (typeof content === 'string') texts.push(content)
    else {
      if (texts.length > 0) parts.push({ type: 'text', text: texts.join(BREAK) })
      texts = []
      for (const part of content ?? []) parts.push(part)
    }
  }
  const text = texts.filter((one) => one !== '').join(BREAK)
  if (parts.length > 0 && text !== '') parts.push({ type: 'text', text })
  const { name } = first
  return { role: 'user', content: parts.length === 0 ? text : parts, ...(name !== undefined && { name }) }
}

function isUserSide(message: ChatMessage): boolean {
  return message.role === 'user' || isSystem(message)
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function textOf(content: ChatMessage['content']): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n')
}

const MAX_SHOWN = 200
const DATA_URL = /^data:([a-z0-9/.+-]{1,80})[^,]{0,200},/i

/** Type and size of the image in a data URL; any other URL itself, truncated. */
export function imageNote(url: string): string {
  const head = DATA_URL.exec(url)
  if (head === null) return `[image: ${url.slice(0, MAX_SHOWN)}]`
  return `[image: ${head[1]}, ${Buffer.byteLength(url.slice(head[0].length), 'base64')} bytes]`
}
