/** A scripted chat worker that returns one turn after another, streamed or not as requested. */
import { type Answer, jsonAnswer, type RecordedRequest, sseAnswer } from './scripted-worker.ts'

export interface ChatBody {
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

export interface Turn {
  readonly reasoning?: string
  readonly text?: string
  readonly call?: { readonly name: string; readonly input: object }
}

/** A chat engine that returns the result of `turnOf` for each request, streamed or not as requested. */
export function chatEngine(turnOf: (body: ChatBody) => Turn): (request: RecordedRequest) => Answer {
  let calls = 0
  return (request) => {
    const body = request.json() as ChatBody
    const { reasoning, text, call } = turnOf(body)
    const id = `call_${++calls}`
    const args = JSON.stringify(call?.input)
    const reason = call === undefined ? 'stop' : 'tool_calls'
    const usage = { prompt_tokens: 21, completion_tokens: 7 }
    if (body.stream !== true) {
      const toolCalls = call && [{ id, type: 'function', function: { name: call.name, arguments: args } }]
      const message = {
        role: 'assistant',
        content: text ?? null,
        reasoning_content: reasoning,
        tool_calls: toolCalls,
      }
      return jsonAnswer({
        id: 'c',
        model: 'm',
        choices: [{ index: 0, message, finish_reason: reason }],
        usage,
      })
    }
    const deltas: object[] = [{ role: 'assistant', content: '' }]
    if (reasoning !== undefined)
      for (const part of halves(reasoning)) deltas.push({ reasoning_content: part })
    if (text !== undefined) for (const part of halves(text)) deltas.push({ content: part })
    if (call !== undefined) {
      deltas.push({
        tool_calls: [{ index: 0, id, type: 'function', function: { name: call.name, arguments: '' } }],
      })
      for (const part of halves(args))
        deltas.push({ tool_calls: [{ index: 0, function: { arguments: part } }] })
    }
    const chunk = (delta: object, finish: string | null) =>
      JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })
    return sseAnswer([
      ...deltas.map((delta) => chunk(delta, null)),
      chunk({}, reason),
      JSON.stringify({ id: 'c', model: 'm', choices: [], usage }),
      '[DONE]',
    ])
  }
}

export function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '')
}

/** Number of tool results in the request. */
export const toolResults = ({ messages }: ChatBody) => messages.filter(({ role }) => role === 'tool').length
