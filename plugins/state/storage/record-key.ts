/** Turns collection, tenant and id into one database key, so that no tenant can reach into another's records. */
import { checkKeyPart } from '#shared'

/** Ends the collection and the tenant. Neither may hold it, so no two triples share a key. */
const END = '\u0000'
/** The next character: the first key beyond all ids of a tenant. */
const AFTER_END = '\u0001'
/** No collection's name has it, so the index of expiry lies apart from all records. */
const EXPIRY_INDEX = `~expiry${END}`
/** Digits of a time in milliseconds, enough until the year 2286; ordered as text as they are as numbers. */
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

/** Where the index remembers that a record expires, in order of time. */
export function expiryKey(expiresAtMs: number, key: string): string {
  return EXPIRY_INDEX + timeText(expiresAtMs) + END + key
}

/** Index entries of all records whose time is over, the oldest first. */
export function expiredRange(nowMs: number): { from: string; to: string } {
  return { from: EXPIRY_INDEX, to: EXPIRY_INDEX + timeText(nowMs) + AFTER_END }
}

/** The key of the record that an index entry is about. */
export function expiredRecordKey(indexKey: string): string {
  return indexKey.slice(EXPIRY_INDEX.length + TIME_DIGITS + 1)
}

function tenantPrefix(collection: string, tenant: string): string {
  return collection + END + checkKeyPart('tenant', tenant)
}

function timeText(timeMs: number): string {
  return String(Math.min(LATEST_MS, Math.max(0, Math.trunc(timeMs)))).padStart(TIME_DIGITS, '0')
}
