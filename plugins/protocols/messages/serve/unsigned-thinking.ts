/**
 * Thinking that no vendor has signed came from another model, and the vendor's service refuses it: such blocks are cut out
 * of the history on its bytes, and everything else stays as it was.
 */

import type { Member } from '#kernel'
import { type Host, type RequestContext, skipSpace, skipValue } from '#kernel'
import { topLevelMembers } from '#shared'

const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
/** As clients write them: most requests pay only for the search for these. */
const EMPTY_SIGNATURES = ['"signature":""', '"signature": ""'].map((text) => Buffer.from(text))
const SIGNATURES = ['"signature":', '"signature" :'].map((text) => Buffer.from(text))
const THINKING = ['"type":"thinking"', '"type": "thinking"'].map((text) => Buffer.from(text))

type Range = readonly [start: number, end: number]

/** Changes the body only if a vendor may get it: engines that speak the format need their own thinking back. */
export function withoutUnsignedThinking(ctx: RequestContext, host: Host, model: string): void {
  const body = ctx.bodyBytes
  if (!looksUnsigned(body)) return
  const workers = host.balance.workersOf(model)
  if (!workers.some(({ isExternal }) => isExternal)) return
  const changed = cutUnsigned(body)
  if (changed !== null) ctx.setBody(changed)
}

/** True if a signature is empty, or if there are fewer signatures than thinking blocks. */
function looksUnsigned(body: Buffer): boolean {
  if (EMPTY_SIGNATURES.some((text) => body.includes(text))) return true
  const blocks = countOf(body, THINKING)
  return blocks > 0 && blocks > countOf(body, SIGNATURES)
}

function countOf(body: Buffer, texts: readonly Buffer[]): number {
  let count = 0
  for (const text of texts)
    for (let at = body.indexOf(text); at >= 0; at = body.indexOf(text, at + text.length)) count++
  return count
}

/** @returns null if there is nothing to remove */
export function cutUnsigned(body: Buffer): Buffer | null {
  const messages = memberOf(body, 0, 'messages')
  if (messages === null) return null
  const cuts: Range[] = []
  for (const message of elements(body, messages[0])) {
    const content = memberOf(body, message[0], 'content', message[1])
    if (content === null || body[content[0]] !== OPEN_BRACKET) continue
    const blocks = elements(body, content[0])
    const unsigned = blocks.filter(([start, end]) => isUnsigned(body, start, end))
    if (unsigned.length === 0) continue
    // A turn without blocks would be refused too.
    if (unsigned.length === blocks.length) cuts.push(message)
    else for (const block of unsigned) cuts.push(block)
  }
  return cuts.length === 0 ? null : withoutElements(body, cuts)
}

function isUnsigned(body: Buffer, start: number, end: number): boolean {
  const type = memberOf(body, start, 'type', end)
  if (type === null || body.toString('latin1', type[0], type[1]) !== '"thinking"') return false
  const signature = memberOf(body, start, 'signature', end)
  return signature === null || signature[1] - signature[0] <= 2
}

/** Range of a member's value; null if there is none. */
function memberOf(body: Buffer, start: number, name: string, end = body.length): Range | null {
  const members: readonly Member[] | null = topLevelMembers(body.subarray(start, end))
  const member = members?.findLast((one) => one.name === name)
  return member === undefined ? null : [start + member.valueStart, start + member.valueEnd]
}

/** Ranges of an array's elements; empty for other values. */
function elements(body: Buffer, start: number): Range[] {
  const found: Range[] = []
  if (body[start] !== OPEN_BRACKET) return found
  let at = skipSpace(body, start + 1)
  while (at < body.length && body[at] !== CLOSE_BRACKET) {
    const end = skipValue(body, at)
    if (end < 0) return []
    found.push([at, end])
    at = skipSpace(body, end)
    if (body[at] === COMMA) at = skipSpace(body, at + 1)
  }
  return found
}

/** Removes each element with the comma behind it, or the one in front of the last. */
function withoutElements(body: Buffer, cuts: readonly Range[]): Buffer {
  const kept: Buffer[] = []
  let from = 0
  for (const [start, end] of cuts) {
    const after = skipSpace(body, end)
    const isLast = body[after] !== COMMA
    kept.push(body.subarray(from, start))
    if (isLast) dropComma(kept)
    from = isLast ? end : after + 1
  }
  kept.push(body.subarray(from))
  return Buffer.concat(kept)
}

/** Removes a comma at the end, before white space; pieces between two cuts may be empty. */
function dropComma(pieces: Buffer[]): void {
  while (pieces.length > 0) {
    const bytes = pieces[pieces.length - 1]
    let end = bytes.length
    while (end > 0 && bytes[end - 1] <= 0x20) end--
    if (end > 0) {
      if (bytes[end - 1] === COMMA) pieces[pieces.length - 1] = bytes.subarray(0, end - 1)
      return
    }
    pieces.pop()
  }
}
