/**
 * Finds and sets top-level members of a JSON object in its bytes, without parsing and serializing the whole body.
 * Intended for bytes that are known to be JSON; functions return null for others.
 */

import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
} from '#kernel'

const CLOSING = Buffer.from('}')
const COMMA_BYTE = Buffer.from(',')
const NOTHING = Buffer.alloc(0)

/** One top-level member: byte offsets, ends exclusive. */
export interface Member {
  readonly name: string
  /** Offset of the opening quote of the name. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** The top-level members in order, including duplicates; null if the bytes are not an object. */
export function topLevelMembers(body: Buffer): Member[] | null {
  const members: Member[] = []
  let at = skipSpace(body, 0)
  if (body[at] !== OPEN_BRACE) return null
  at = skipSpace(body, at + 1)
  if (body[at] === CLOSE_BRACE) return members
  for (;;) {
    const member = memberAt(body, at)
    if (member === null) return null
    members.push(member)
    at = skipSpace(body, member.valueEnd)
    if (body[at] === CLOSE_BRACE) return members
    if (body[at] !== COMMA) return null
    at = skipSpace(body, at + 1)
  }
}

function memberAt(body: Buffer, start: number): Member | null {
  if (body[start] !== QUOTE) return null
  const nameEnd = skipString(body, start)
  if (nameEnd < 0) return null
  const colon = skipSpace(body, nameEnd)
  if (body[colon] !== COLON) return null
  const valueStart = skipSpace(body, colon + 1)
  const valueEnd = skipValue(body, valueStart)
  return valueEnd < 0 ? null : { name: toName(body, start, nameEnd), start, valueStart, valueEnd }
}

/**
 * Returns the object with the added members first, replacing members of the same name; the rest is unchanged.
 *
 * @param added JSON text of each value, by name
 * @returns null if the body is not a JSON object
 */
export function withMembers(body: Buffer, added: ReadonlyMap<string, string>): Buffer | null {
  const members = topLevelMembers(body)
  if (members === null) return null
  const first = Buffer.from(`{${[...added].map(toMember).join(',')}`)
  const kept = members.filter(({ name }) => !added.has(name))
  if (kept.length === 0) return Buffer.concat([first, CLOSING])
  const comma = added.size > 0 ? COMMA_BYTE : NOTHING
  if (kept.length === members.length) {
    return Buffer.concat([first, comma, body.subarray(skipSpace(body, 0) + 1)])
  }
  const parts: Buffer[] = [first, comma]
  kept.forEach(({ start, valueEnd }, index) => {
    if (index > 0) parts.push(COMMA_BYTE)
    parts.push(body.subarray(start, valueEnd))
  })
  return Buffer.concat(parts.concat(CLOSING))
}

function toMember([name, json]: readonly [string, string]): string {
  return `${JSON.stringify(name)}:${json}`
}

/** Number of elements of the array at `start`, and the first byte of the first one; null if it is not an array. */
export function arrayShape(body: Buffer, start: number): { length: number; firstByte: number } | null {
  if (body[start] !== OPEN_BRACKET) return null
  let at = skipSpace(body, start + 1)
  if (body[at] === CLOSE_BRACKET) return { length: 0, firstByte: CLOSE_BRACKET }
  const firstByte = body[at]
  for (let length = 1; ; length++) {
    const after = skipValue(body, at)
    if (after < 0) return null
    at = skipSpace(body, after)
    if (body[at] === CLOSE_BRACKET) return { length, firstByte }
    if (body[at] !== COMMA) return null
    at = skipSpace(body, at + 1)
  }
}

/** Decodes escapes, so that every spelling of a name matches. */
function toName(body: Buffer, start: number, end: number): string {
  const raw = body.toString('utf8', start + 1, end - 1)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`) as string
  } catch {
    return raw
  }
}
