/** A worker's error response as a gateway error: status, message and retry-after. */
import { type GatewayError, type HeaderList, headerOf } from '#kernel'
import { tryParseJson, workerMessage } from '#shared'
import { generationErrors } from './errors.ts'

/** Characters of the worker's message that the client gets. */
const MAX_MESSAGE_LENGTH = 1_000

/** @param body its beginning, at most 64 KiB */
export function toRefusal(status: number, headers: HeaderList, body: Buffer): GatewayError {
  const content = body.toString('utf8')
  const plain = { text: content.trim(), code: null, param: null }
  const { text, code, param } = workerMessage(tryParseJson(content)) ?? plain
  const message = text === '' ? `the worker answered with status ${status}` : shorten(text)
  const retryAfter = headerOf(headers, 'retry-after')
  return generationErrors.worker_refused.with(
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
