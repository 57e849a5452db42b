/** Encoding of a record in the database: a head with version and expiry, then the JSON. */

/** Starts a head; no JSON text starts with it. */
const HEAD = '@'

export interface RecordHead {
  /** Empty for a record without a head. */
  readonly version: string
  /** Milliseconds since 1970; null if the record does not expire. */
  readonly expiresAtMs: number | null
  /** Offset of the JSON. */
  readonly jsonStart: number
}

/** @param version letters, digits and dots */
export function encodeRecord(json: string, version: string, expiresAtMs: number | null): string {
  return expiresAtMs === null ? `${HEAD}${version} ${json}` : `${HEAD}${version},${expiresAtMs} ${json}`
}

export function readHead(text: string): RecordHead {
  if (!text.startsWith(HEAD)) return { version: '', expiresAtMs: null, jsonStart: 0 }
  const end = text.indexOf(' ')
  const comma = text.lastIndexOf(',', end)
  if (comma < 0) return { version: text.slice(1, end), expiresAtMs: null, jsonStart: end + 1 }
  return {
    version: text.slice(1, comma),
    expiresAtMs: Number(text.slice(comma + 1, end)),
    jsonStart: end + 1,
  }
}

export function isExpired(head: RecordHead, nowMs: number): boolean {
  return head.expiresAtMs !== null && head.expiresAtMs <= nowMs
}
