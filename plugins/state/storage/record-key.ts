/** Encodes collection, tenant and id in one database key. */
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
