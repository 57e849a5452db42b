/**
 * Checks what plugins make of a reply before any of it is sent: half of a head cannot be taken back, and the server
 * library writes header lines as they are given.
 * @source RFC 9110 §5.1, §5.5, §15
 */
import type { IncomingResponse } from '../contracts/hook.ts'
import type { Reply } from '../contracts/request.ts'
import { isToken } from '../wire/header-syntax.ts'

/** The gateway writes these itself: how a message is framed is not for plugins to say. */
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

/** What `onResponse` hooks left behind; headers about framing are taken out. @throws TypeError */
export function assertSendable(response: IncomingResponse): void {
  const { headers, body } = response
  assertStatus(response.status, 'an onResponse hook')
  assertHeaders(headers, 'an onResponse hook')
  if (body !== null && !Buffer.isBuffer(body))
    throw new TypeError('an onResponse hook set a body that is no Buffer')
  for (let i = headers.length - 2; i >= 0; i -= 2)
    if (OWN_HEADERS.has(headers[i].toLowerCase())) headers.splice(i, 2)
}

/** A reply with its content type among its headers. */
export type CheckedReply = Required<Omit<Reply, 'contentType'>>

/** A reply that somebody else made, ready to be sent. @param owner who made it, for the message @throws TypeError */
export function checkedReply(reply: Reply, owner: string): CheckedReply {
  const { status, headers = [], contentType, body = '' } = reply
  assertStatus(status, owner)
  const all = contentType === undefined ? headers : ['content-type', contentType, ...headers]
  assertHeaders(all, owner)
  if (typeof body !== 'string' && !Buffer.isBuffer(body))
    throw new TypeError(`${owner} gave a body that is neither text nor a Buffer`)
  return { status, headers: withoutOwn(all), body }
}

function withoutOwn(headers: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2)
    if (!OWN_HEADERS.has(headers[i].toLowerCase())) kept.push(headers[i], headers[i + 1])
  return kept
}

function assertStatus(status: number, owner: string): void {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`${owner} set the status to ${status}`)
}

function assertHeaders(headers: readonly string[], owner: string): void {
  if (
    !Array.isArray(headers) ||
    headers.length % 2 !== 0 ||
    !headers.every((text) => typeof text === 'string')
  )
    throw new TypeError(`${owner} left headers that are no list of names and values`)
  for (let i = 0; i < headers.length; i += 2) {
    if (!isToken(headers[i]))
      throw new TypeError(`${owner} left a header whose name is none: ${JSON.stringify(headers[i])}`)
    if (hasControl(headers[i + 1]))
      throw new TypeError(`${owner} left control characters in the header ${headers[i]}`)
  }
}

/** Anything else is sent as UTF-8, whose bytes end no line. */
function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if ((code < SPACE && code !== TAB) || code === DELETE) return true
  }
  return false
}
