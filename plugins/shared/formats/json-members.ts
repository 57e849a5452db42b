/**
 * Finds and sets top-level members of a JSON object in its bytes, without parsing and serializing the whole body.
 * Intended for bytes that are known to be JSON; functions return null for others.
 */

import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  eachMember,
  type Member,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipSpace,
  skipValue,
} from '#kernel'

const CLOSING = Buffer.from('}')
const COMMA_BYTE = Buffer.from(',')
const NOTHING = Buffer.alloc(0)

/** The top-level members in order, including duplicates; null if the bytes are not an object. */
export function topLevelMembers(body: Buffer): Member[] | null {
  const open = skipSpace(body, 0)
  if (body[open] !== OPEN_BRACE) return null
  const members = [...eachMember(body)]
  const end = members.at(-1)?.valueEnd ?? open + 1
  return body[skipSpace(body, end)] === CLOSE_BRACE ? members : null
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
