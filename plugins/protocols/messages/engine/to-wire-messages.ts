/** A chat's messages as those of the format: system in front, results of tools in the user's turn. @source Anthropic API reference, Messages */
import type { ChatMessage, ChatToolCall, ContentPart } from '#kernel'
import { answerErrors, parseCallArguments, textOfFile } from '#shared'
import type { WireBlock, WireBlockOf, WireMessage } from '../wire.ts'
import { ENGINE } from './message-answer.ts'

/** @param isVendor omits thinking without a signature, and the data of other vendors */
export function toWireMessages(
  messages: readonly ChatMessage[],
  isVendor: boolean,
): { system?: string; messages: WireMessage[] } {
  const isSystem = ({ role }: ChatMessage) => role === 'system' || role === 'developer'
  const firstOther = messages.findIndex((message) => !isSystem(message))
  const leading = messages.slice(0, firstOther < 0 ? messages.length : firstOther)
  const system = leading.map(systemText).join('\n')
  const wire: OpenTurn[] = []
  for (const message of messages.slice(leading.length)) {
    if (isSystem(message)) wire.push({ role: 'system', contents: [systemText(message)] })
    else if (message.role === 'assistant') addTurn(wire, 'assistant', assistantContent(message, isVendor))
    else if (message.role === 'tool') addTurn(wire, 'user', [toolResult(message)])
    else addTurn(wire, 'user', userContent(message.content))
  }
  return { ...(system !== '' && { system }), messages: wire.map(toTurn) }
}

/** @throws unsupported_by_worker (400) for other parts than text */
function systemText({ content }: ChatMessage): string {
  const other = Array.isArray(content)
    ? (content as readonly ContentPart[]).find(({ type }) => type !== 'text')
    : undefined
  if (other !== undefined)
    throw unsupported(`a system message with a part of type '${other.type.slice(0, 64)}'`)
  return textOf(content)
}

/** Contents of neighbours of one role, joined at the end. */
interface OpenTurn {
  readonly role: WireMessage['role']
  readonly contents: (string | WireBlock[])[]
}

/** Neighbours of one role become one turn, as the format requires of the results of several calls. */
function addTurn(wire: OpenTurn[], role: 'user' | 'assistant', content: string | WireBlock[]): void {
  const last = wire.at(-1)
  if (last === undefined || last.role !== role) wire.push({ role, contents: [content] })
  else last.contents.push(content)
}

function toTurn({ role, contents }: OpenTurn): WireMessage {
  return { role, content: contents.length === 1 ? contents[0] : contents.flatMap(toBlocks) }
}

/** An empty text has no block. */
export function toBlocks(content: string | WireBlock[]): WireBlock[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function userContent(content: ChatMessage['content']): string | WireBlock[] {
  return typeof content === 'string' || content === null ? (content ?? '') : content.map(toContentBlock)
}

function toolResult({ tool_call_id: id, content, is_error: isError }: ChatMessage): WireBlock {
  return {
    type: 'tool_result',
    tool_use_id: id ?? '',
    content: typeof content === 'string' || content === null ? (content ?? '') : content.map(toContentBlock),
    ...(isError === true && { is_error: true }),
  }
}

function assistantContent(message: ChatMessage, isVendor: boolean): string | WireBlock[] {
  const own = nativeContent(message, isVendor)
  if (own !== null) return own
  const {
    content,
    reasoning_content: thinking,
    reasoning_signature: signature,
    refusal,
    tool_calls: calls = [],
  } = message
  const extra = isVendor ? undefined : message.extra_content
  const said = textOf(content) + (refusal ?? '')
  const isKept = (thinking !== undefined || signature !== undefined) && (signature !== undefined || !isVendor)
  if (!isKept && calls.length === 0 && extra === undefined) return said
  const blocks: WireBlock[] = []
  if (isKept) blocks.push({ type: 'thinking', thinking: thinking ?? '', signature: signature ?? '' })
  if (said !== '' || extra !== undefined)
    blocks.push({ type: 'text', text: said, ...(extra !== undefined && { extra_content: extra }) })
  for (const call of calls) blocks.push(toToolUse(call, isVendor))
  return blocks
}

/** The turn as the worker wrote it, with the call ids that the results use; null if it came from another format. */
function nativeContent(
  { native, tool_calls: calls = [] }: ChatMessage,
  isVendor: boolean,
): WireBlock[] | null {
  if (native?.engine !== ENGINE || native.content.length === 0) return null
  let count = 0
  const blocks: WireBlock[] = []
  for (const block of native.content as readonly WireBlock[]) {
    if (block.type === 'tool_use') {
      const call = calls.at(count++)
      blocks.push(call === undefined ? block : { ...block, id: call.id })
    } else if (!isVendor || !isUnsigned(block)) blocks.push(block)
  }
  return count === calls.length ? blocks : null
}

export function isUnsigned(block: WireBlock): boolean {
  return block.type === 'thinking' && (typeof block.signature !== 'string' || block.signature === '')
}

function toToolUse(call: ChatToolCall, isVendor: boolean): WireBlock {
  const { id, function: called, extra_content } = call
  const extra = isVendor || extra_content === undefined ? {} : { extra_content }
  return { type: 'tool_use', id, name: called.name, input: parseCallArguments(called.arguments), ...extra }
}

/** A block as a vendor takes it: without the data of others; null if it has nothing else. */
export function withoutExtraContent(block: WireBlock): WireBlock | null {
  if (!('extra_content' in block)) return block
  const { extra_content: data, ...rest } = block
  return data != null && rest.type === 'text' && rest.text === '' ? null : rest
}

function textOf(content: string | readonly ContentPart[] | null): string {
  if (content === null || typeof content === 'string') return content ?? ''
  return content.flatMap((part) => (part.type === 'text' ? (part as { text: string }).text : [])).join('\n')
}

const DATA_URL = 'data:'

/** @throws unsupported_by_worker (400) for audio, video and files by id */
function toContentBlock(part: ContentPart): WireBlockOf<'text' | 'image' | 'document'> {
  if ('value' in part) throw unsupported(`a part of type '${part.type.slice(2, 66)}'`)
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image_url':
      return { type: 'image', source: toSource(part.image_url.url) }
    case 'file': {
      const { file_data: data, file_url: url, filename } = part.file
      if (data === undefined && url === undefined) throw unsupported('a file by its id')
      return {
        type: 'document',
        source: data === undefined ? { type: 'url', url: String(url) } : toFileSource(data),
        ...(filename !== undefined && { title: filename }),
      }
    }
    default:
      throw unsupported(`a part of type '${part.type}'`)
  }
}

function toFileSource(url: string) {
  const text = textOfFile(url)
  return text === null ? toSource(url) : { type: 'text' as const, media_type: 'text/plain', data: text }
}

function toSource(url: string) {
  const marker = ';base64,'
  const at = url.startsWith(DATA_URL) ? url.indexOf(marker) : -1
  if (at < 0) return { type: 'url' as const, url }
  return {
    type: 'base64' as const,
    media_type: url.slice(DATA_URL.length, at),
    data: url.slice(at + marker.length),
  }
}

function unsupported(what: string) {
  return answerErrors.unsupported_by_worker.with({ param: 'messages' }, what)
}
