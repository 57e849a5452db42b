/** The members of the top-level object of a JSON text, found on its bytes without parsing their values. */
import { COLON, COMMA, OPEN_BRACE, QUOTE, skipSpace, skipString, skipValue } from './json-bytes.ts'

/** One member: byte offsets, ends exclusive. */
export interface Member {
  readonly name: string
  /** Offset of the opening quote of the name. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** Ends at the first fault of the text; yields nothing if it is no object. Duplicates are yielded too. */
export function* eachMember(json: Buffer): Generator<Member> {
  const first = skipSpace(json, 0)
  let at = first
  while (json[at] === (at === first ? OPEN_BRACE : COMMA)) {
    const start = skipSpace(json, at + 1)
    const nameEnd = json[start] === QUOTE ? skipString(json, start) : -1
    const colon = nameEnd < 0 ? -1 : skipSpace(json, nameEnd)
    if (colon < 0 || json[colon] !== COLON) return
    const valueStart = skipSpace(json, colon + 1)
    const valueEnd = skipValue(json, valueStart)
    if (valueEnd < 0) return
    const name = nameOf(json.toString('utf8', start, nameEnd))
    if (name === null) return
    yield { name, start, valueStart, valueEnd }
    at = skipSpace(json, valueEnd)
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
