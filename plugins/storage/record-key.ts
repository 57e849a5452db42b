/** Turns collection, tenant and id into one database key, so that no tenant can reach into another's records. */
import { storageErrors } from './errors.ts'

/** Ends the collection and the tenant. Neither may hold it, so no two triples share a key. */
const END = '\u0000'
/** The next character: the first key beyond all ids of a tenant. */
const AFTER_END = '\u0001'

/** @throws invalid_collection_name for anything but letters, digits and hyphens */
export function checkCollectionName(name: string): void {
  if (!/^[A-Za-z0-9-]+$/.test(name)) throw storageErrors.invalid_collection_name(name)
}

/** @throws invalid_record_key (400) for a tenant with a NUL, and for text that is not well-formed Unicode */
export function recordKey(collection: string, tenant: string, id: string): string {
  // Lone surrogates would all be written as the same replacement character.
  if (!id.isWellFormed()) throw storageErrors.invalid_record_key('id')
  return tenantPrefix(collection, tenant) + END + id
}

/** The keys of one tenant: at or after `from`, before `to`. */
export function tenantRange(collection: string, tenant: string): { from: string; to: string } {
  const prefix = tenantPrefix(collection, tenant)
  return { from: prefix + END, to: prefix + AFTER_END }
}

function tenantPrefix(collection: string, tenant: string): string {
  if (tenant.includes(END) || !tenant.isWellFormed()) throw storageErrors.invalid_record_key('tenant')
  return collection + END + tenant
}
