/** A chat's messages as those of the format: system in front, results of tools in the user's turn. @source Anthropic API reference, Messages */
import type { ChatMessage, ChatToolCall, ContentPart } from '#kernel'
import { toContentBlock } from './content-block.ts'
import { ENGINE } from './message-answer.ts'
import { toInput } from './native-blocks.ts'
import type { Json } from './wire.ts'

export interface WireMessage {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: string | Json[]
}

const NOT_IN_IDS = /[^A-Za-z0-9_-]/g

/** @param isVendor thinking without a signature is left out */
export function toWireMessages(
  messages: readonly ChatMessage[],
  isVendor: boolean,
): { system?: string; messages: WireMessage[] } {
  const isSystem = ({ role }: ChatMessage) => role === 'system' || role === 'developer'
  const firstOther = messages.findIndex((message) => !isSystem(message))
  const leading = messages.slice(0, firstOther < 0 ? messages.length : firstOther)
  const system = leading.map(({ content }) => textOf(content)).join('\n')
  const wire: OpenTurn[] = []
  for (const message of messages.slice(leading.length)) {
    if (isSystem(message)) wire.push({ role: 'system', contents: [textOf(message.content)] })
    else if (message.role === 'assistant') addTurn(wire, 'assistant', assistantContent(message, isVendor))
    else if (message.role === 'tool') addTurn(wire, 'user', [toolResult(message)])
    else addTurn(wire, 'user', userContent(message.content))
  }
  return { ...(system !== '' && { system }), messages: wire.map(toTurn) }
}

/** What neighbours of one role say, put together once all of them are known. */
interface OpenTurn {
  readonly role: WireMessage['role']
  readonly contents: (string | Json[])[]
}

/** Turns of one role alternate: neighbours are one turn, as the results of several calls must be. */
function addTurn(wire: OpenTurn[], role: 'user' | 'assistant', content: string | Json[]): void {
  const last = wire.at(-1)
  if (last === undefined || last.role !== role) wire.push({ role, contents: [content] })
  else last.contents.push(content)
}

function toTurn({ role, contents }: OpenTurn): WireMessage {
  return { role, content: contents.length === 1 ? contents[0] : contents.flatMap(toBlocks) }
}

function toBlocks(content: string | Json[]): Json[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function userContent(content: ChatMessage['content']): string | Json[] {
  return typeof content === 'string' || content === null ? (content ?? '') : content.map(toContentBlock)
}

function toolResult({ tool_call_id: id, content, is_error: isError }: ChatMessage): Json {
  return {
    type: 'tool_result',
    tool_use_id: toWireId(id ?? ''),
    content: typeof content === 'string' || content === null ? (content ?? '') : content.map(toContentBlock),
    ...(isError === true && { is_error: true }),
  }
}

function assistantContent(message: ChatMessage, isVendor: boolean): string | Json[] {
  const own = ownWords(message, isVendor)
  if (own !== null) return own
  const {
    content,
    reasoning_content: thinking,
    reasoning_signature: signature,
    refusal,
    tool_calls: calls,
  } = message
  const said = textOf(content) + (refusal ?? '')
  const isKept = (thinking !== undefined || signature !== undefined) && (signature !== undefined || !isVendor)
  if (!isKept && (calls === undefined || calls.length === 0)) return said
  const blocks: Json[] = []
  if (isKept) blocks.push({ type: 'thinking', thinking: thinking ?? '', signature: signature ?? '' })
  if (said !== '') blocks.push({ type: 'text', text: said })
  for (const call of calls ?? []) blocks.push(toToolUse(call))
  return blocks
}

/** As the worker wrote it, calls under the ids that their results have. Null where it has no such words. */
function ownWords({ native, tool_calls: calls = [] }: ChatMessage, isVendor: boolean): Json[] | null {
  if (native?.engine !== ENGINE || native.content.length === 0) return null
  let count = 0
  const blocks: Json[] = []
  for (const block of native.content) {
    if (block.type === 'tool_use') {
      const call = calls.at(count++)
      blocks.push(call === undefined ? block : { ...block, id: toWireId(call.id) })
    } else if (!isVendor || !isUnsigned(block)) blocks.push(block)
  }
  return count === calls.length ? blocks : null
}

export function isUnsigned({ type, signature }: Json): boolean {
  return type === 'thinking' && (typeof signature !== 'string' || signature === '')
}

function toToolUse({ id, function: { name, arguments: text } }: ChatToolCall): Json {
  return { type: 'tool_use', id: toWireId(id), name, input: toInput(text) }
}

/** The same change for a call and its result. */
function toWireId(id: string): string {
  return id.replace(NOT_IN_IDS, '_')
}

function textOf(content: string | readonly ContentPart[] | null): string {
  if (content === null || typeof content === 'string') return content ?? ''
  return content.flatMap((part) => (part.type === 'text' ? (part as { text: string }).text : [])).join('\n')
}
