/** Scripts of a worker that serves the Messages API: one message, streamed if the request has `stream: true`. */
import { randomUUID } from 'node:crypto'
import { jsonAnswer, type Script, streamAnswer } from './scripted-worker.ts'

export const MESSAGES = 'POST /v1/messages'

export interface MessageSaid {
  readonly text?: string
  readonly call?: { readonly id: string; readonly name: string; readonly input: object }
}

type Json = Record<string, unknown>

export function messageSays({ text, call }: MessageSaid): Script {
  const content: Json[] = text === undefined ? [] : [{ type: 'text', text }]
  if (call !== undefined) content.push({ type: 'tool_use', ...call })
  const end = { stop_reason: call === undefined ? 'end_turn' : 'tool_use', stop_sequence: null }
  // Agents join messages of one id.
  const head = { id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', model: 'test-model' }
  const usage = { input_tokens: 10, output_tokens: 5 }
  return (request) => {
    if ((request.json() as { stream?: boolean }).stream !== true)
      return jsonAnswer({ ...head, content, ...end, usage })
    const frames: string[] = []
    const event = (type: string, members: Json) =>
      frames.push(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`)
    const open = { ...head, content: [], stop_reason: null, stop_sequence: null, usage }
    event('message_start', { message: open })
    for (const [index, block] of content.entries()) {
      const isText = block.type === 'text'
      const content_block = isText ? { type: 'text', text: '' } : { ...block, input: {} }
      event('content_block_start', { index, content_block })
      const delta = isText
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      event('content_block_delta', { index, delta })
      event('content_block_stop', { index })
    }
    event('message_delta', { delta: end, usage: { output_tokens: 5 } })
    event('message_stop', {})
    return streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } })
  }
}
