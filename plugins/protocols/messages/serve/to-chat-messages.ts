/** The conversation of a Messages request as chat messages. */
import type { ChatMessage, ChatToolCall, ContentPart } from '#kernel'
import { extraContentOf, sourceText } from '#shared'
import { invalidField } from '../errors.ts'
import type { MessagesRequest, WireBlock, WireBlockOf } from '../wire.ts'
import { toWorkerId } from './tool-ids.ts'
import { type MediaOptions, toToolMessage, toUserMessages, untranslatable } from './user-content.ts'

/** @throws invalid_field (400) naming the block that cannot be translated */
export function toChatMessages({ system, messages }: MessagesRequest, options: MediaOptions): ChatMessage[] {
  const chat: ChatMessage[] = []
  const lists = new JoinedParts()
  const add = (message: ChatMessage) => {
    const last = chat.at(-1)
    const merged = last === undefined ? null : merge(last, message, lists)
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

/** Merges neighbours of one role into one turn, as the vendor does and as many chat templates require. */
function merge(first: ChatMessage, second: ChatMessage, lists: JoinedParts): ChatMessage | null {
  if (first.role !== second.role || first.role === 'tool') return null
  if (first.role === 'user' || first.role === 'system')
    return { role: first.role, content: lists.join(first.content, second.content) }
  if (first.tool_calls !== undefined || first.reasoning_content !== undefined) return null
  if (second.reasoning_content !== undefined) return null
  return { ...first, ...second, content: lists.join(first.content, second.content) }
}

type Content = ChatMessage['content']

/** Remembers the lists that it made, so that many neighbours extend one list instead of copying it each time. */
class JoinedParts {
  readonly #own = new WeakSet<readonly ContentPart[]>()

  join(first: Content, second: Content): Content {
    if (first === null || first === '') return second
    if (second === null || second === '') return first
    if (typeof first === 'string' && typeof second === 'string') return `${first}\n${second}`
    const given = toParts(first)
    const parts = this.#own.has(given) ? (given as ContentPart[]) : given.slice()
    for (const part of toParts(second)) parts.push(part)
    this.#own.add(parts)
    return parts
  }
}

function toParts(content: string | readonly ContentPart[]): readonly ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/**
 * Agents put such a line first, with a value that changes with every request: it would defeat the prefix cache of an
 * engine.
 */
const BILLING = 'x-anthropic-billing-header:'

/** Texts joined by line feeds, without billing lines. @throws invalid_field (400) for blocks other than text */
function systemText(content: string | readonly { readonly type: string }[], path: string): string {
  if (typeof content === 'string') return withoutBilling(content)
  const texts: string[] = []
  for (const [index, block] of (content as readonly WireBlock[]).entries()) {
    if (block.type !== 'text')
      throw invalidField(`${path}.${index}.type`, 'only text can be translated here', block.type)
    const text = withoutBilling(block.text)
    if (text !== '') texts.push(text)
  }
  return texts.join('\n')
}

function withoutBilling(text: string): string {
  if (!text.includes(BILLING)) return text
  return text
    .split('\n')
    .filter((line) => !line.startsWith(BILLING))
    .join('\n')
}

/** Blocks that only the vendor's own service can use. */
const DROPPED: ReadonlySet<string> = new Set([
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'tool_reference',
  'container_upload',
  'mcp_tool_listing',
  'tool_addition',
  'tool_removal',
  'fallback',
  'advisor_tool_result',
])

class OpenTurn {
  text = ''
  thinking = ''
  signature = ''
  calls: ChatToolCall[] = []
  /** About text and thinking. */
  extraContent: ReturnType<typeof extraContentOf> = {}

  get isEmpty(): boolean {
    return this.text === '' && this.thinking === '' && this.calls.length === 0
  }

  toMessage(): ChatMessage {
    const { text, thinking, signature, calls, extraContent } = this
    return {
      role: 'assistant',
      content: text === '' && !(calls.length === 0 && thinking === '') ? null : text,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(signature !== '' && { reasoning_signature: signature }),
      ...extraContent,
      ...(calls.length > 0 && { tool_calls: calls }),
    }
  }
}

/** Results of tools that the gateway ran split the turn: in the chat format they are messages of their own. */
function toAssistantMessages(
  content: string | readonly WireBlock[],
  path: string,
  options: MediaOptions,
): ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'assistant', content }]
  const messages: ChatMessage[] = []
  let turn = new OpenTurn()
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    if (block.type === 'mcp_tool_result') {
      if (!turn.isEmpty) messages.push(turn.toMessage())
      turn = new OpenTurn()
      messages.push(toToolMessage(block, at, [], options))
    } else addBlock(turn, block, at)
  }
  if (!turn.isEmpty || messages.length === 0) messages.push(turn.toMessage())
  return messages
}

function addBlock(turn: OpenTurn, block: WireBlock, path: string): void {
  switch (block.type) {
    case 'text':
      turn.text += block.text
      turn.extraContent = { ...turn.extraContent, ...extraContentOf(block.extra_content) }
      return
    case 'compaction':
      turn.text += block.content ?? ''
      return
    case 'thinking':
      if (block.thinking !== '') turn.thinking += (turn.thinking === '' ? '' : '\n') + block.thinking
      if (typeof block.signature === 'string') turn.signature = block.signature
      turn.extraContent = { ...turn.extraContent, ...extraContentOf(block.extra_content) }
      return
    case 'tool_use':
    case 'mcp_tool_use':
      turn.calls.push(toCall(block))
      return
    default:
      if (!DROPPED.has(block.type)) throw untranslatable(block, path)
  }
}

function toCall(block: WireBlockOf<'tool_use' | 'mcp_tool_use'>): ChatToolCall {
  const { id, name, input, extra_content: data } = block
  return {
    id: toWorkerId(id),
    type: 'function',
    function: { name, arguments: sourceText(input ?? {}) },
    ...extraContentOf(data),
  }
}
