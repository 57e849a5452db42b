/** The streams of the simulated worker, and the checks of what the client received. */
import { createHash } from 'node:crypto'

/** Chunks of content per stream, 1 ms apart. */
export const SSE_CHUNKS = 64

/** One event of the usual size of a chat completion chunk. */
export const SSE_CHUNK = `data: ${JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, delta: { content: ' token' }, logprobs: null, finish_reason: null }],
})}\n\n`

/** A stream without finish_reason counts as truncated. */
export const SSE_DONE = `data: ${JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
})}\n\ndata: [DONE]\n\n`

/** SHA-256 of one stream. */
export function sseSha256(): string {
  return createHash('sha256').update(SSE_CHUNK.repeat(SSE_CHUNKS)).update(SSE_DONE).digest('hex')
}

/** Whether a re-encoded chat stream has all deltas of the worker and its end. */
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

/** Whether a streamed response has all deltas of the worker and its end. */
export function isSameResponse(stream: Buffer): boolean {
  const events = stream.toString('utf8').split('\n\n').slice(0, -1)
  const type = 'event: response.output_text.delta\n'
  const deltas = events
    .filter((event) => event.startsWith(type))
    .map((event) => (JSON.parse(event.slice(type.length + 'data: '.length)) as { delta: string }).delta)
  return events.at(-1) === 'data: [DONE]' && deltas.join('') === ' token'.repeat(SSE_CHUNKS)
}

const event = (value: { readonly type: string; readonly [member: string]: unknown }) =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`
const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'bench', content: [] }
const usage = { input_tokens: 60, output_tokens: 64 }

/** The same stream in the Messages format. */
export const MESSAGE_START =
  event({ type: 'message_start', message: { ...message, stop_reason: null, usage } }) +
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
export const MESSAGE_CHUNK = event({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: ' token' },
})
export const MESSAGE_END =
  event({ type: 'content_block_stop', index: 0 }) +
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }) +
  event({ type: 'message_stop' })

/** SHA-256 of one message stream. */
export function messagesSha256(): string {
  return createHash('sha256')
    .update(MESSAGE_START + MESSAGE_CHUNK.repeat(SSE_CHUNKS) + MESSAGE_END)
    .digest('hex')
}

/** The same stream in the Responses format, as OpenAI's service sends it. */
const answer = { id: 'msg_bench', type: 'message', role: 'assistant' }
const part = { type: 'output_text', annotations: [], logprobs: [] }
const ofItem = { item_id: answer.id, output_index: 0, content_index: 0 }
const allText = ' token'.repeat(SSE_CHUNKS)
const response = {
  id: 'resp_bench',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'bench',
  error: null,
}
const wholeAnswer = { ...answer, status: 'completed', content: [{ ...part, text: allText }] }
const responseEvents = [
  { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
  { type: 'response.in_progress', response: { ...response, status: 'in_progress', output: [] } },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...answer, status: 'in_progress', content: [] },
  },
  { type: 'response.content_part.added', ...ofItem, part: { ...part, text: '' } },
  ...Array.from({ length: SSE_CHUNKS }, () => ({
    type: 'response.output_text.delta',
    ...ofItem,
    delta: ' token',
    logprobs: [],
    obfuscation: 'bVw4k9Qz',
  })),
  { type: 'response.output_text.done', ...ofItem, text: allText, logprobs: [] },
  { type: 'response.content_part.done', ...ofItem, part: { ...part, text: allText } },
  { type: 'response.output_item.done', output_index: 0, item: wholeAnswer },
  {
    type: 'response.completed',
    response: {
      ...response,
      status: 'completed',
      output: [wholeAnswer],
      usage: { ...usage, total_tokens: 124 },
    },
  },
].map(({ type, ...members }, number) => event({ type, sequence_number: number, ...members }))
const FIRST_DELTA = 4
export const RESPONSE_START = responseEvents.slice(0, FIRST_DELTA).join('')
export const RESPONSE_CHUNKS = responseEvents.slice(FIRST_DELTA, FIRST_DELTA + SSE_CHUNKS)
export const RESPONSE_END = responseEvents.slice(FIRST_DELTA + SSE_CHUNKS).join('')

/** Whether a message stream has all deltas of the worker and its end. */
export function isSameMessage(stream: Buffer): boolean {
  const events = stream.toString('utf8').split('\n\n').slice(0, -1)
  let text = ''
  for (const one of events) {
    if (!one.startsWith('event: content_block_delta\n')) continue
    const { delta } = JSON.parse(one.slice(one.indexOf('\ndata: ') + 7)) as { delta: { text?: string } }
    text += delta.text ?? ''
  }
  return events.at(-1)?.startsWith('event: message_stop\n') === true && text === ' token'.repeat(SSE_CHUNKS)
}
