/** An assistant's turn as chat messages; calls that a gateway has answered itself part it. */
import type { ChatMessage, ChatToolCall } from '#kernel'
import { invalidField } from '../errors.ts'
import type { WireBlock } from '../wire.ts'
import type { MediaOptions } from './media-parts.ts'
import { toWorkerId } from './tool-ids.ts'
import { resultText } from './user-turn.ts'

/** What only the vendor's own service can read, and what says nothing to a model that has not written it. */
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

  get isEmpty(): boolean {
    return this.text === '' && this.thinking === '' && this.calls.length === 0
  }

  toMessage(): ChatMessage {
    const { text, thinking, signature, calls } = this
    return {
      role: 'assistant',
      content: text === '' && !(calls.length === 0 && thinking === '') ? null : text,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(signature !== '' && { reasoning_signature: signature }),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
  }
}

/** @throws invalid_field (400) naming the block */
export function toAssistantMessages(
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
      messages.push(toMcpResult(block, at, options))
    } else add(turn, block, at)
  }
  if (!turn.isEmpty || messages.length === 0) messages.push(turn.toMessage())
  return messages
}

function add(turn: OpenTurn, block: WireBlock, path: string): void {
  switch (block.type) {
    case 'text':
    case 'compaction': {
      const text = block.type === 'text' ? block.text : (block.content ?? '')
      if (typeof text !== 'string') throw invalidField(`${path}.text`, 'field required')
      turn.text += text
      return
    }
    case 'thinking': {
      if (typeof block.thinking !== 'string') throw invalidField(`${path}.thinking`, 'field required')
      if (block.thinking !== '') turn.thinking += (turn.thinking === '' ? '' : '\n') + block.thinking
      if (typeof block.signature === 'string') turn.signature = block.signature
      return
    }
    case 'tool_use':
    case 'mcp_tool_use':
      turn.calls.push(toCall(block, path))
      return
    default:
      if (!DROPPED.has(block.type))
        throw invalidField(
          `${path}.type`,
          `a block of type '${block.type.slice(0, 64)}' cannot be translated for this model`,
        )
  }
}

function toCall({ id, name, input }: WireBlock, path: string): ChatToolCall {
  if (typeof id !== 'string' || id === '') throw invalidField(`${path}.id`, 'field required')
  if (typeof name !== 'string' || name === '') throw invalidField(`${path}.name`, 'field required')
  return {
    id: toWorkerId(id),
    type: 'function',
    function: { name, arguments: JSON.stringify(input ?? {}) },
  }
}

function toMcpResult(
  { tool_use_id: id, content, is_error: isError }: WireBlock,
  path: string,
  options: MediaOptions,
): ChatMessage {
  if (typeof id !== 'string' || id === '') throw invalidField(`${path}.tool_use_id`, 'field required')
  return {
    role: 'tool',
    tool_call_id: toWorkerId(id),
    content: resultText(content, `${path}.content`, [], options),
    ...(isError === true && { is_error: true }),
  }
}
