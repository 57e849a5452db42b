/** Scripts of a worker that serves the Responses API: one response, streamed if the request has `stream: true`. */
import { type Answer, jsonAnswer, type Script, type StreamStep, sseAnswer } from './scripted-worker.ts'

export const NATIVE = 'POST /v1/responses'

type Json = Record<string, unknown>

export interface NativeAnswer {
  /** Items with the worker's ids. */
  readonly output: readonly Json[]
  /** Default completed. */
  readonly status?: string
  readonly more?: Json
}

const USAGE = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 15,
}

export const text = (said: string, id = 'msg_up') => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text: said, annotations: [], logprobs: [] }],
})

export function nativeAnswer(said: NativeAnswer | string): Script {
  const whole = typeof said === 'string' ? { output: [text(said)] } : said
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true ? streamed(whole) : jsonAnswer(reply(whole))
}

function reply({ output, status = 'completed', more = {} }: NativeAnswer): Json {
  return {
    id: 'resp_up',
    object: 'response',
    created_at: 1_700_000_000,
    model: 'test-model',
    status,
    output,
    error: null,
    incomplete_details: null,
    usage: status === 'in_progress' ? null : USAGE,
    ...more,
  }
}

function streamed(said: NativeAnswer): Answer {
  const steps: StreamStep[] = []
  const event = (type: string, members: Json) =>
    steps.push(JSON.stringify({ type, sequence_number: steps.length, ...members }))
  const begun = reply({ output: [], status: 'in_progress' })
  event('response.created', { response: begun })
  event('response.in_progress', { response: begun })
  for (const [output_index, item] of said.output.entries()) {
    const where = { item_id: item.id, output_index }
    const opened = item.type === 'message' ? { ...item, content: [], status: 'in_progress' } : item
    event('response.output_item.added', { output_index, item: opened })
    for (const [type, piece] of deltasOf(item)) {
      const logprobs = item.type === 'message' ? { logprobs: [] } : {}
      event(type, { ...where, content_index: 0, delta: piece, ...logprobs, obfuscation: 'xx' })
    }
    event('response.output_item.done', { output_index, item })
  }
  event(`response.${said.status ?? 'completed'}`, { response: reply(said) })
  return sseAnswer(steps)
}

function deltasOf(item: Json): (readonly [string, string])[] {
  const pieces = (said: unknown) => String(said).match(/[\s\S]{1,4}/gu) ?? []
  if (item.type === 'message') {
    const [part] = item.content as { text: string }[]
    return pieces(part.text).map((one) => ['response.output_text.delta', one])
  }
  if (item.type === 'function_call')
    return pieces(item.arguments).map((one) => ['response.function_call_arguments.delta', one])
  return []
}
