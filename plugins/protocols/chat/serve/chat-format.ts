/** Responses of chat, completions and embeddings as the relay sees them. */
import {
  type BodyEdit,
  type GatewayError,
  isObject,
  type ResponseFormat,
  type RoutingPeek,
  skipSpace,
  skipValue,
  usageOfBody,
} from '#kernel'
import { type AddText, answerErrors, BodyObserver, textOfDeltas, tryParseJson } from '#shared'
import { ABORT, ChatObserver, ERROR, hasAborted } from './chat-observer.ts'

/** End of a whole answer that is searched for its finish reason. */
const BODY_END_BYTES = 1_024
const ASKED = '"stream_options":{"include_usage":true},'

export const chatFormat: ResponseFormat = {
  observe: (response) => (response.isEventStream ? new ChatObserver(response) : new BodyObserver()),
  usageOf: (body) => usageOfBody(body),
  errorOf: errorOfBody,
  askForUsage,
  textOf: (events) => textOfDeltas(events, addDeltas),
}

/** Embeddings and scores: the prompt alone has a usage. */
export const embeddingFormat: ResponseFormat = {
  hasOutput: false,
  observe: () => new BodyObserver(),
  usageOf: (body) => usageOfBody(body),
}

function errorOfBody(body: Buffer): GatewayError | null {
  const end = Math.max(0, body.length - BODY_END_BYTES)
  if (!body.includes(ABORT, end) && !body.includes(ERROR, end)) return null
  const answer = tryParseJson(body.toString('utf8'))
  return isObject(answer) && hasAborted(answer) ? answerErrors.worker_aborted() : null
}

/**
 * Asks a worker for the token usage of a streamed chat or completion: sets `stream_options.include_usage` in the bytes of the
 * body. Only an existing `stream_options` object is parsed.
 *
 * @returns null if the body asks already, or has `stream_options` that the worker is to reject
 * @source OpenAI API reference, chat completions, stream_options
 */
function askForUsage(body: Buffer, { streamOptionsStart: start }: RoutingPeek): BodyEdit | null {
  if (start < 0) {
    const open = skipSpace(body, 0) + 1
    return { start: open, end: open, text: ASKED }
  }
  const end = skipValue(body, start)
  const options = tryParseJson(body.toString('utf8', start, end))
  if (options !== null && !isObject(options)) return null
  if (options?.include_usage === true) return null
  return { start, end, text: JSON.stringify({ ...options, include_usage: true }) }
}

function addDeltas({ choices }: Record<string, unknown>, add: AddText): void {
  if (!Array.isArray(choices)) return
  for (const choice of choices)
    if (isObject(choice)) {
      add(`${choice.index}`, choice.text)
      if (isObject(choice.delta)) addChatDelta(`${choice.index}`, choice.delta, add)
    }
}

function addChatDelta(choice: string, delta: Record<string, unknown>, add: AddText): void {
  for (const member of ['content', 'reasoning_content', 'reasoning', 'refusal'])
    add(`${choice} ${member}`, delta[member])
  const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  for (const call of calls)
    if (isObject(call) && isObject(call.function)) {
      add(`${choice} call ${call.index}`, call.function.name)
      add(`${choice} call ${call.index}`, call.function.arguments)
    }
}
