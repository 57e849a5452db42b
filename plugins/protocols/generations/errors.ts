/** Errors of generations, and a worker's error response as one: status, message and retry-after. */
import { defineErrors, type GatewayError, type HeaderList, headerOf, readRefusal } from '#kernel'
import { answerErrors } from '#shared'

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

/** @param body its beginning, at most 64 KiB */
export function toRefusal(status: number, headers: HeaderList, body: Buffer): GatewayError {
  const { message, code, param, type } = readRefusal(status, body)
  const retryAfter = headerOf(headers, 'retry-after')
  return answerErrors.worker_refused.with(
    {
      status,
      type,
      param,
      // A number is the status again, for which each format has a code of its own.
      ...(code !== undefined && !/^\d+$/.test(code) && { code }),
      ...(retryAfter !== undefined && { headers: ['retry-after', retryAfter] }),
    },
    message,
  )
}
