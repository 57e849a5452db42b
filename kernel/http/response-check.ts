/**
 * Checks responses of plugins before they are sent: a partly sent head cannot be withdrawn, and the server library writes
 * header lines unchecked.
 * @source RFC 9110 §5.1, §5.5, §15
 */
import type { IncomingResponse } from '../contracts/hook.ts'
import type { WholeResponse } from '../contracts/request.ts'
import { filterHeaders, isToken } from '../wire/headers.ts'

/** Framing headers, which only the gateway writes. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const TAB = 0x09
const SPACE = 0x20
const DELETE = 0x7f

/** Checks a response after the `onResponse` hooks; framing headers are removed. @throws TypeError */
export function assertSendable(response: IncomingResponse): void {
  const { headers, body } = response
  assertStatus(response.status, 'an onResponse hook')
  assertHeaders(headers, 'an onResponse hook')
  if (body !== null && !Buffer.isBuffer(body))
    throw new TypeError('an onResponse hook set a body that is not a Buffer')
  for (let i = headers.length - 2; i >= 0; i -= 2)
    if (OWN_HEADERS.has(headers[i].toLowerCase())) headers.splice(i, 2)
}

/** A response with its content type among its headers. */
export type CheckedResponse = Required<Omit<WholeResponse, 'contentType'>>

/** Checks the response of a plugin. @param owner its origin, for the message @throws TypeError */
export function checkedResponse(response: WholeResponse, owner: string): CheckedResponse {
  const { status, headers = [], contentType, body = '' } = response
  assertStatus(status, owner)
  const all = contentType === undefined ? headers : ['content-type', contentType, ...headers]
  assertHeaders(all, owner)
  if (typeof body !== 'string' && !Buffer.isBuffer(body))
    throw new TypeError(`${owner} returned a body that is neither a string nor a Buffer`)
  return { status, headers: withoutOwn(all), body }
}

function withoutOwn(headers: readonly string[]): string[] {
  return filterHeaders(headers, (name) => !OWN_HEADERS.has(name.toLowerCase()))
}

function assertStatus(status: number, owner: string): void {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`${owner} set the status to ${status}`)
}

/** @param owner their origin, for the message @throws TypeError for an invalid header name or value */
export function assertHeaders(headers: readonly string[], owner: string): void {
  if (
    !Array.isArray(headers) ||
    headers.length % 2 !== 0 ||
    !headers.every((text) => typeof text === 'string')
  )
    throw new TypeError(`${owner} returned headers that are not a list [name, value, …] of strings`)
  for (let i = 0; i < headers.length; i += 2) {
    if (!isToken(headers[i]))
      throw new TypeError(`${owner} returned an invalid header name: ${JSON.stringify(headers[i])}`)
    if (hasControl(headers[i + 1]))
      throw new TypeError(`${owner} returned control characters in the header ${headers[i]}`)
  }
}

/** Other characters are sent as UTF-8, whose bytes cannot end a line. */
function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if ((code < SPACE && code !== TAB) || code === DELETE) return true
  }
  return false
}
