/**
 * Reads single members of a large JSON file without parsing the rest: a vocabulary of 30 MB would become hundreds of
 * megabytes of objects.
 */

// Not through #kernel, which would load the kernel into each pool thread.
import {
  CLOSE_BRACE,
  COLON,
  COMMA,
  OPEN_BRACE,
  QUOTE,
  skipSpace,
  skipValue,
} from '../../../kernel/wire/json-bytes.ts'

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
    if (bytes[at] !== QUOTE) throw new SyntaxError(`a string is expected at byte ${at}`)
    const nameEnd = endOfValue(bytes, at)
    const name: unknown = JSON.parse(bytes.toString('utf8', at, nameEnd))
    at = skipSpace(bytes, nameEnd)
    if (bytes[at] !== COLON) throw new SyntaxError(`a colon is expected at byte ${at}`)
    const valueStart = skipSpace(bytes, at + 1)
    const valueEnd = endOfValue(bytes, valueStart)
    members.set(String(name), [valueStart, valueEnd])
    at = skipSpace(bytes, valueEnd)
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
    else if (bytes[at] !== CLOSE_BRACE) throw new SyntaxError(`a comma is expected at byte ${at}`)
  }
  return members
}

/** Contents of containers are not checked: errors in them are found when the member is parsed. */
function endOfValue(bytes: Buffer, start: number): number {
  const end = skipValue(bytes, start)
  if (end >= 0) return end
  const [first] = bytes.toString('latin1', start, start + 1)
  if (first === '"') throw new SyntaxError('the file ends inside a string')
  const isCut = first === undefined || first === '{' || first === '['
  throw new SyntaxError(isCut ? 'the file ends inside a value' : `the value at byte ${start} is not JSON`)
}

/** Parses a member; undefined if it does not exist. */
export function jsonMember(bytes: Buffer, members: ReturnType<typeof jsonMembers>, name: string): unknown {
  const range = members.get(name)
  return range === undefined ? undefined : JSON.parse(bytes.toString('utf8', range[0], range[1]))
}
