/** Messages of a chat as input items. @source OpenAI API reference, Responses */
import type { ChatMessage, ContentPart, JsonObject } from '#kernel'
import { ENGINE, KINDS } from './response-answer.ts'

export function toWireItems(messages: readonly ChatMessage[]): JsonObject[] {
  const items: JsonObject[] = []
  for (const message of messages) {
    if (message.role === 'tool') items.push(toOutput(message))
    else if (message.role === 'assistant') {
      const own = nativeItems(message)
      if (own === null) addTurn(items, message)
      else items.push(...own)
    } else items.push({ type: 'message', role: message.role, content: toContent(message.content) })
  }
  return items
}

function toOutput({ tool_call_id, content, is_error }: ChatMessage): JsonObject {
  const output = typeof content === 'string' ? content : toContent(content)
  const said = is_error === true && typeof output === 'string' ? `Error: ${output}` : output
  return { type: 'function_call_output', call_id: tool_call_id, output: said }
}

/** The turn as the worker wrote it, with the call ids that the results use; null if it came from another format. */
function nativeItems({ native, tool_calls: calls = [] }: ChatMessage): JsonObject[] | null {
  if (native?.engine !== ENGINE) return null
  let count = 0
  const items = native.content.map((item) => {
    if (!KINDS.has(item.type)) return item
    // The worker stores nothing, so it knows no ids.
    const { id: _, status: __, ...rest } = item
    if (item.type !== 'function_call') return rest
    const call = calls.at(count++)
    return call === undefined ? rest : { ...rest, call_id: call.id, arguments: call.function.arguments }
  })
  return count === calls.length && items.length > 0 ? items : null
}

function addTurn(items: JsonObject[], message: ChatMessage): void {
  const { content, refusal, reasoning_content: thoughts, reasoning_signature: sealed, tool_calls } = message
  const { extra_content } = message
  const extra = extra_content === undefined ? {} : { extra_content }
  if (sealed !== undefined) items.push({ type: 'reasoning', summary: [], encrypted_content: sealed })
  else if (thoughts !== undefined)
    items.push({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: thoughts }] })
  const parts: JsonObject[] = []
  const said = typeof content === 'string' ? content : textOf(content)
  if (said !== '') parts.push({ type: 'output_text', text: said, annotations: [] })
  if (refusal !== undefined) parts.push({ type: 'refusal', refusal })
  if (parts.length > 0 || extra_content !== undefined)
    items.push({ type: 'message', role: 'assistant', content: parts, ...extra })
  for (const { id, function: called, extra_content: ofCall } of tool_calls ?? [])
    items.push({
      type: 'function_call',
      call_id: id,
      name: called.name,
      arguments: called.arguments,
      ...(ofCall !== undefined && { extra_content: ofCall }),
    })
}

function textOf(content: readonly ContentPart[] | null): string {
  return content?.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
}

function toContent(content: ChatMessage['content']): JsonObject[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return content?.map(toPart) ?? []
}

function toPart(part: ContentPart): JsonObject {
  if ('value' in part) return part.value as JsonObject
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image_url':
      return {
        type: 'input_image',
        image_url: part.image_url.url,
        detail: part.image_url.detail ?? 'auto',
      }
    case 'file':
      return { type: 'input_file', ...part.file }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio }
    case 'video_url':
      return { type: 'input_video', video_url: part.video_url.url }
  }
}
