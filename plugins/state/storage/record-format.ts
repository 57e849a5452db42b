/**
 * Encoding of records in the database. A key is collection, tenant and id; a value is a head with version and expiry, then
 * the JSON.
 */
import { checkKeyPart } from '#shared'

/** Terminates collection and tenant. Neither may contain it, so keys are unique. */
const END = '\u0000'
/** The next character; starts the first key after all ids of a tenant. */
const AFTER_END = '\u0001'
/** Collection names cannot contain `~`, so the expiry index is separate from all records. */
const EXPIRY_INDEX = `~expiry${END}`
/** Digits of a time in milliseconds until the year 2286; fixed, so that text order is numeric order. */
const TIME_DIGITS = 13
const LATEST_MS = 10 ** TIME_DIGITS - 1

/** @throws invalid_record_key (400) */
export function recordKey(collection: string, tenant: string, id: string): string {
  return tenantPrefix(collection, tenant) + END + checkKeyPart('id', id)
}

/** The keys of one tenant: at or after `from`, before `to`. */
export function tenantRange(collection: string, tenant: string): { from: string; to: string } {
  const prefix = tenantPrefix(collection, tenant)
  return { from: prefix + END, to: prefix + AFTER_END }
}

/** The keys of one collection. */
export function collectionRange(collection: string): { from: string; to: string } {
  return { from: collection + END, to: collection + AFTER_END }
}

/** The parts of a record's key. */
export function splitKey(key: string): { collection: string; tenant: string; id: string } {
  const tenantAt = key.indexOf(END) + 1
  const idAt = key.indexOf(END, tenantAt) + 1
  return {
    collection: key.slice(0, tenantAt - 1),
    tenant: key.slice(tenantAt, idAt - 1),
    id: key.slice(idAt),
  }
}

/** Key in the expiry index, ordered by time. */
export function expiryKey(expiresAtMs: number, key: string): string {
  return EXPIRY_INDEX + timeText(expiresAtMs) + END + key
}

/** Range of the index entries of expired records, oldest first. */
export function expiredRange(nowMs: number): { from: string; to: string } {
  return { from: EXPIRY_INDEX, to: EXPIRY_INDEX + timeText(nowMs) + AFTER_END }
}

export function expiredRecordKey(indexKey: string): string {
  return indexKey.slice(EXPIRY_INDEX.length + TIME_DIGITS + 1)
}

function tenantPrefix(collection: string, tenant: string): string {
  return collection + END + checkKeyPart('tenant', tenant)
}

function timeText(timeMs: number): string {
  return String(Math.min(LATEST_MS, Math.max(0, Math.trunc(timeMs)))).padStart(TIME_DIGITS, '0')
}

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
