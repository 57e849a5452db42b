/** Errors of generations, and a worker's error response as one: status, message and retry-after. */
import { defineErrors, type GatewayError, type HeaderList, headerOf, workerMessage } from '#kernel'
import { answerErrors, tryParseJson } from '#shared'

export const generationErrors = defineErrors('generations', {
  engine_missing: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (model: string, apis: readonly string[]) =>
      `no enabled plugin can send this request to the workers of model ${model}, which take the formats: ${apis.join(', ') || 'none'}; if they have a route for chats or completions, add it to 'apis' of the worker`,
  },
  generation_cut_off: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => "the worker's answer ended before it was complete",
  },
  worker_extra_content_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: () => "the vendor's data of a call or turn exceeds 65536 characters of JSON",
  },
  engine_unreadable: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (what: string) => `the worker's answer could not be read: ${what}`,
  },
})

/** Characters of the worker's message that the client gets. */
const MAX_MESSAGE_LENGTH = 1_000

/** @param body its beginning, at most 64 KiB */
export function toRefusal(status: number, headers: HeaderList, body: Buffer): GatewayError {
  const content = body.toString('utf8')
  const plain = { text: content.trim(), code: null, param: null }
  const { text, code, param } = workerMessage(tryParseJson(content)) ?? plain
  const message = text === '' ? `the worker answered with status ${status}` : shorten(text)
  const retryAfter = headerOf(headers, 'retry-after')
  return answerErrors.worker_refused.with(
    {
      status,
      ...(code !== null && { code }),
      ...(param !== null && { param }),
      ...(retryAfter !== undefined && { headers: ['retry-after', retryAfter] }),
    },
    message,
  )
}

function shorten(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH)}…`
}
