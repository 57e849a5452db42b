/**
 * Reads single members of a large JSON file without parsing the rest: a vocabulary of 30 MB would become hundreds of
 * megabytes of objects.
 */

/** Maximum nesting; no tokenizer needs more. */
const MAX_DEPTH = 64

/**
 * The members of the JSON object that begins at `start`, as byte ranges; members of the same name: the last one.
 * @throws SyntaxError when the bytes are no JSON object
 */
export function jsonMembers(bytes: Buffer, start = 0): Map<string, readonly [start: number, end: number]> {
  const members = new Map<string, readonly [number, number]>()
  let at = skipSpace(bytes, start)
  if (bytes[at] !== OPEN_BRACE) throw new SyntaxError('a JSON object is expected')
  at = skipSpace(bytes, at + 1)
  while (bytes[at] !== CLOSE_BRACE) {
    const nameEnd = skipString(bytes, at)
    const name: unknown = JSON.parse(bytes.toString('utf8', at, nameEnd))
    at = skipSpace(bytes, nameEnd)
    if (bytes[at] !== COLON) throw new SyntaxError(`a colon is expected at byte ${at}`)
    const valueStart = skipSpace(bytes, at + 1)
    const valueEnd = skipValue(bytes, valueStart)
    members.set(String(name), [valueStart, valueEnd])
    at = skipSpace(bytes, valueEnd)
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
    else if (bytes[at] !== CLOSE_BRACE) throw new SyntaxError(`a comma is expected at byte ${at}`)
  }
  return members
}

/** Parses a member; undefined if it does not exist. */
export function jsonMember(bytes: Buffer, members: ReturnType<typeof jsonMembers>, name: string): unknown {
  const range = members.get(name)
  return range === undefined ? undefined : JSON.parse(bytes.toString('utf8', range[0], range[1]))
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COLON = 0x3a
const COMMA = 0x2c

function skipSpace(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return at
}

function skipString(bytes: Buffer, start: number): number {
  if (bytes[start] !== QUOTE) throw new SyntaxError(`a string is expected at byte ${start}`)
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at++
    else if (bytes[at] === QUOTE) return at + 1
  }
  throw new SyntaxError('the file ends inside a string')
}

/** Skips a value; errors inside it are found when the member is parsed. */
function skipValue(bytes: Buffer, start: number): number {
  if (bytes[start] === QUOTE) return skipString(bytes, start)
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = skipString(bytes, at) - 1
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > MAX_DEPTH) throw new SyntaxError('the file is nested too deeply')
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && byte === COMMA) return at
  }
  throw new SyntaxError('the file ends inside a value')
}
