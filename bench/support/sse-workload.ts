/** The stream that relay-sse measures: what the worker sends and what the client must have received. */
import { createHash } from 'node:crypto'

/** Chunks of content per stream, 1 ms apart. */
export const SSE_CHUNKS = 64

/** One event, as large as a chat completion chunk usually is. */
export const SSE_CHUNK = `data: ${JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, delta: { content: ' token' }, logprobs: null, finish_reason: null }],
})}\n\n`

export const SSE_DONE = 'data: [DONE]\n\n'

/** SHA-256 of one whole stream. */
export function sseSha256(): string {
  return createHash('sha256').update(SSE_CHUNK.repeat(SSE_CHUNKS)).update(SSE_DONE).digest('hex')
}

/** Whether a stream that was told anew holds the deltas of the worker's, all of them, and its end. */
export function isSameText(stream: Buffer): boolean {
  const events = stream.toString('utf8').split('\n\n').slice(0, -1)
  const deltas = events.slice(0, -1).map((event) => {
    const { choices } = JSON.parse(event.slice('data: '.length)) as {
      choices: { delta: { content?: string } }[]
    }
    return choices[0]?.delta.content ?? ''
  })
  return events.at(-1) === 'data: [DONE]' && deltas.join('') === ' token'.repeat(SSE_CHUNKS)
}

/** The same of a streamed response. */
export function isSameResponse(stream: Buffer): boolean {
  const events = stream.toString('utf8').split('\n\n').slice(0, -1)
  const type = 'event: response.output_text.delta\n'
  const deltas = events
    .filter((event) => event.startsWith(type))
    .map((event) => (JSON.parse(event.slice(type.length + 'data: '.length)) as { delta: string }).delta)
  return events.at(-1) === 'data: [DONE]' && deltas.join('') === ' token'.repeat(SSE_CHUNKS)
}
