/**
 * JSON texts of parsed values, for those that parsing changes: 1.0 becomes 1, large integers lose digits, and members whose
 * names are integers move to the front. Prompts need them as the client wrote them.
 */
import { CLOSE_BRACKET, COMMA, OPEN_BRACKET, skipSpace, skipValue } from '#kernel'
import { topLevelMembers } from './json-members.ts'

const texts = new WeakMap<object, string>()

/** A member with an integer as its name, a fraction, an exponent, many digits, or a negative zero. */
const CHANGES = /"\d+"\s*:|\d\.\d|\d[eE]|\d{16}|-0/

/** The text of a value, as it was received if parsing changes it. */
export function sourceText(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? texts.get(value) : undefined
  return text ?? JSON.stringify(value)
}

/**
 * Keeps the texts of objects in a body as long as the objects exist.
 * @param value the parsed body
 * @param path names of members from the body to the objects; `*` stands for the items of a list
 */
export function keepSourceTexts(body: Buffer, value: unknown, [name, ...path]: readonly string[]): void {
  if (typeof value !== 'object' || value === null) return
  if (name === undefined) {
    const text = body.toString('utf8')
    if (CHANGES.test(text)) texts.set(value, text)
    return
  }
  if (name === '*') {
    if (!Array.isArray(value)) return
    for (const [index, range] of itemRanges(body).entries()) keepSourceTexts(range, value[index], path)
    return
  }
  const child = (value as Readonly<Record<string, unknown>>)[name]
  if (typeof child !== 'object' || child === null) return
  const member = topLevelMembers(body)?.findLast((candidate) => candidate.name === name)
  if (member !== undefined) keepSourceTexts(body.subarray(member.valueStart, member.valueEnd), child, path)
}

function itemRanges(body: Buffer): Buffer[] {
  const ranges: Buffer[] = []
  let at = skipSpace(body, 0)
  if (body[at] !== OPEN_BRACKET) return ranges
  at = skipSpace(body, at + 1)
  while (at < body.length && body[at] !== CLOSE_BRACKET) {
    const end = skipValue(body, at)
    if (end < 0) break
    ranges.push(body.subarray(at, end))
    at = skipSpace(body, end)
    if (body[at] === COMMA) at = skipSpace(body, at + 1)
  }
  return ranges
}
