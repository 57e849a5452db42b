/** Scripts of a chat worker: one completion, streamed if the request has `stream: true`. */
import { type Answer, jsonAnswer, type Script, type StreamStep, sseAnswer } from './scripted-worker.ts'

export const CHAT = 'POST /v1/chat/completions'

type Json = Record<string, unknown>

export interface ChatAnswer {
  readonly content?: string | null
  readonly reasoning_content?: string
  readonly refusal?: string
  readonly tool_calls?: readonly { id: string; name: string; arguments: string }[]
  readonly finish?: string
  readonly usage?: Json
  readonly annotations?: readonly Json[]
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

/** Returns a script that responds with this completion, streamed or not as requested. */
export function chatAnswer(said: ChatAnswer | string): Script {
  const whole = typeof said === 'string' ? { content: said } : said
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true ? streamedAnswer(whole) : wholeAnswer(whole)
}

function finishOf({ finish, tool_calls }: ChatAnswer): string {
  return finish ?? (tool_calls === undefined ? 'stop' : 'tool_calls')
}

function wireCalls(calls: ChatAnswer['tool_calls']) {
  return calls?.map((call, index) => ({
    index,
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
}

function wholeAnswer(said: ChatAnswer): Answer {
  const { content = null, reasoning_content, refusal, annotations } = said
  return jsonAnswer({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'test-model',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          reasoning_content,
          refusal,
          annotations,
          tool_calls: wireCalls(said.tool_calls),
        },
        finish_reason: finishOf(said),
      },
    ],
    usage: said.usage ?? USAGE,
  })
}

export function chunk(delta: Json, finish: string | null = null, more: Json = {}): string {
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'test-model',
    choices: [{ index: 0, delta, finish_reason: finish, ...more }],
  })
}

function streamedAnswer(said: ChatAnswer): Answer {
  const { content, reasoning_content, refusal, tool_calls, annotations } = said
  const steps: StreamStep[] = [chunk({ role: 'assistant', content: '' })]
  for (const piece of pieces(reasoning_content)) steps.push(chunk({ reasoning_content: piece }))
  for (const piece of pieces(content)) steps.push(chunk({ content: piece }))
  for (const piece of pieces(refusal)) steps.push(chunk({ refusal: piece }))
  if (annotations !== undefined) steps.push(chunk({ annotations }))
  for (const call of wireCalls(tool_calls) ?? []) {
    steps.push(chunk({ tool_calls: [{ ...call, function: { name: call.function.name, arguments: '' } }] }))
    for (const piece of pieces(call.function.arguments))
      steps.push(chunk({ tool_calls: [{ index: call.index, function: { arguments: piece } }] }))
  }
  steps.push(chunk({}, finishOf(said)))
  steps.push(JSON.stringify({ ...JSON.parse(chunk({})), choices: [], usage: said.usage ?? USAGE }), '[DONE]')
  return sseAnswer(steps)
}

function pieces(text: string | null | undefined): string[] {
  return text?.match(/[\s\S]{1,4}/gu) ?? []
}
