/**
 * Requests whose bytes pass through to workers that speak the format: what is checked of the body, how the request is sent,
 * and what is added to the response.
 */
import {
  headerOf,
  type IncomingResponse,
  type Member,
  type PassThrough,
  type RequestContext,
  skipSpace,
} from '#kernel'
import { messagesHeaders, topLevelMembers, MESSAGES_VERSION_HEADER as VERSION_HEADER } from '#shared'
import { invalidField } from '../errors.ts'
import { messagesFormat } from './messages-format.ts'

/** The format's name in `WorkerEntry.apis`. */
export const API = 'messages'

const DATE = /^\d{4}-\d{2}-\d{2}$/
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const MAX_SHOWN_BYTES = 80
const MAX_DIGITS = 15

/**
 * Checks on the bytes the members without which a body is no Messages request. The worker checks everything else, so that
 * nothing it may know is refused here.
 *
 * @returns whether the body names tool servers
 * @throws invalid_field (400) naming `max_tokens` or `messages`
 */
export function checkHead(body: Buffer, needsMaxTokens: boolean): boolean {
  const members = topLevelMembers(body) ?? []
  const messages = members.findLast(({ name }) => name === 'messages')
  if (messages === undefined) throw invalidField('messages', 'is required')
  if (
    body[messages.valueStart] !== OPEN_BRACKET ||
    body[skipSpace(body, messages.valueStart + 1)] === CLOSE_BRACKET
  )
    throw invalidField('messages', 'must be an array of at least one message')
  if (needsMaxTokens) checkMaxTokens(body, members)
  return members.some(({ name }) => name === 'mcp_servers')
}

function checkMaxTokens(body: Buffer, members: readonly Member[]): void {
  const maxTokens = members.findLast(({ name }) => name === 'max_tokens')
  if (maxTokens === undefined) throw invalidField('max_tokens', 'is required')
  const { valueStart, valueEnd } = maxTokens
  for (let at = valueStart; at < valueEnd; at++) {
    const isDigit = body[at] >= 0x30 && body[at] <= 0x39
    if (!isDigit || valueEnd - valueStart > MAX_DIGITS) {
      const got = body.toString('utf8', valueStart, Math.min(valueEnd, valueStart + MAX_SHOWN_BYTES))
      throw invalidField('max_tokens', `must be an integer >= 0 (got ${got})`)
    }
  }
}

/**
 * Reads the version header and the model of a request, before its body is parsed.
 *
 * @throws invalid_field (400) naming the header or `model`; json_parse_error (400)
 */
export function readModel(ctx: RequestContext): string {
  const version = ctx.header(VERSION_HEADER)
  if (version !== undefined && !DATE.test(version))
    throw invalidField(VERSION_HEADER, 'must be a date such as 2023-06-01', version)
  const { model } = ctx.peek()
  if (model === null) throw invalidField('model', 'is required')
  if (model === '') throw invalidField('model', 'must not be empty')
  return model
}

/** How the bytes are sent. */
export function passThroughOf(ctx: RequestContext): PassThrough {
  return {
    api: API,
    path: ctx.path,
    headers: messagesHeaders(ctx),
    format: messagesFormat,
  }
}

/** Adds the request id to a worker's response. */
export function addRequestId(ctx: RequestContext, { headers }: IncomingResponse): void {
  if (headerOf(headers, 'request-id') === undefined) headers.push('request-id', ctx.requestId)
}
