/** Errors of generations, and a worker's error response as one: status, message and retry-after. */
import {
  defineErrors,
  type GatewayError,
  type HeaderList,
  headerOf,
  type RequestContext,
  readRefusal,
} from '#kernel'
import { answerErrors, clientError, pathOfText } from '#shared'

export const generationErrors = defineErrors('generations', {
  engine_missing: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (model: string, apis: readonly string[]) =>
      `no enabled plugin can send this request to the workers of model ${model}, which take the formats: ${apis.join(', ') || 'none'}; if they have a route for chats or completions, add it to 'apis' of the worker`,
  },
  file_not_loaded: clientError(
    (url: string, path: string | null, problem: string) =>
      `the file ${url}${path === null ? '' : ` of '${path}'`} cannot be loaded: ${problem}`,
  ),
  too_many_files: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: number) =>
      `more than ${limit} files of this tenant are being loaded (plugins.generations.fileUrls.maxConcurrentPerTenant)`,
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

const MAX_URL_SHOWN = 200

/** Names the part of the client's request, and its URL without the query, which may contain a signature. */
export function fileNotLoaded(ctx: RequestContext, url: string, problem: string): GatewayError {
  const path = pathOfText(ctx.bodyJson(), url)
  const shown = url.split(/[?#]/, 1)[0].slice(0, MAX_URL_SHOWN)
  return generationErrors.file_not_loaded.with(path === null ? {} : { param: path }, shown, path, problem)
}
