/** The members of the top-level object of a JSON text, found on its bytes without parsing their values. */
import { COLON, COMMA, OPEN_BRACE, QUOTE, skipSpace, skipString, skipValue } from './json-bytes.ts'

export interface TopLevelMember {
  readonly name: string
  /** Byte range of the value. */
  readonly start: number
  readonly end: number
}

/** Ends at the first fault of the text; yields nothing if it is no object. */
export function* topLevelMembers(json: Buffer): Generator<TopLevelMember> {
  const first = skipSpace(json, 0)
  let at = first
  while (json[at] === (at === first ? OPEN_BRACE : COMMA)) {
    const name = skipSpace(json, at + 1)
    const nameEnd = json[name] === QUOTE ? skipString(json, name) : -1
    const colon = nameEnd < 0 ? -1 : skipSpace(json, nameEnd)
    if (colon < 0 || json[colon] !== COLON) return
    const start = skipSpace(json, colon + 1)
    const end = skipValue(json, start)
    if (end < 0) return
    const decoded = nameOf(json.toString('utf8', name, nameEnd))
    if (decoded === null) return
    yield { name: decoded, start, end }
    at = skipSpace(json, end)
  }
}

/** Null if an escape is invalid. */
function nameOf(quoted: string): string | null {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return JSON.parse(quoted) as string
  } catch {
    return null
  }
}
