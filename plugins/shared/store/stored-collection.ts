/** What every store has in common: rules for keys, values and versions of records, so that records can move between stores, and collections whose writes of single records go through the store. */
import { randomBytes } from 'node:crypto'
import {
  type Collection,
  JsonText,
  type PutOptions,
  type RangeOptions,
  type RecordPage,
  type StoredRecord,
  type StoreService,
  type WriteOptions,
} from '#kernel'
import { pagesOf } from './record-pages.ts'
import { storeErrors } from './store-operations.ts'

/** Tenant and id together must fit into an index entry of every store. */
const MAX_PART_BYTES = 1_024
/** A shorter text cannot exceed the limit in UTF-8. */
const MAX_UNCHECKED_CHARS = MAX_PART_BYTES / 4

/** Cache of checked names. */
const knownNames = new Set<string>()
const MAX_KNOWN = 1_000

/** @throws invalid_collection_name for anything but up to 64 letters, digits and hyphens */
export function checkCollectionName(name: string): void {
  if (knownNames.has(name)) return
  if (!/^[A-Za-z0-9-]{1,64}$/.test(name)) throw storeErrors.invalid_collection_name(name.slice(0, 100))
  if (knownNames.size < MAX_KNOWN) knownNames.add(name)
}

/** @throws invalid_record_key (400) for a NUL, more than 1,024 bytes, and text that is not well-formed Unicode */
export function checkKeyPart(part: 'tenant' | 'id', text: string): string {
  // Lone surrogates would all be encoded as the same replacement character.
  const isKey =
    !text.includes('\u0000') &&
    text.isWellFormed() &&
    (text.length <= MAX_UNCHECKED_CHARS || Buffer.byteLength(text) <= MAX_PART_BYTES)
  if (!isKey) throw storeErrors.invalid_record_key(part)
  return text
}

/**
 * Serializes a record.
 * @throws TypeError for a value without JSON representation, record_too_large (413)
 */
export function toRecordJson(value: unknown, maxChars: number): string {
  const json = value instanceof JsonText ? value.text : JSON.stringify(value)
  if (json === undefined) throw new TypeError('a record must be a JSON value')
  if (json.length > maxChars) throw storeErrors.record_too_large(json.length, maxChars)
  return json
}

/** @returns a generator of record versions, unique over threads and processes */
export function makeVersionStamps(): () => string {
  const instance = randomBytes(8).readBigUInt64LE().toString(36)
  let count = 0
  return () => `${instance}.${(count++).toString(36)}`
}

/**
 * Parses the JSON of a stored record.
 * @throws record_unreadable (500) if it is no JSON or not valid for the collection
 */
export function parseRecord<T>(
  { name, isValid }: { readonly name: string; readonly isValid: (value: unknown) => boolean },
  id: string,
  json: string,
): T {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw storeErrors.record_unreadable.with({ cause }, name, id)
  }
  if (!isValid(value)) throw storeErrors.record_unreadable(name, id)
  return value as T
}

export type WriteChanges = StoreService['write']

export abstract class StoredCollection<T> implements Collection<T> {
  readonly name: string
  readonly isValid: (value: unknown) => boolean
  readonly #write: WriteChanges

  constructor(name: string, isValid: (value: unknown) => boolean, write: WriteChanges) {
    this.name = name
    this.isValid = isValid
    this.#write = write
  }

  abstract read(tenant: string, id: string): Promise<StoredRecord<T> | undefined>
  abstract getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]>
  abstract range(tenant: string, options?: RangeOptions): Promise<RecordPage<T>>
  abstract tenants(options?: Parameters<Collection<T>['tenants']>[0]): Promise<string[]>

  async get(tenant: string, id: string): Promise<T | undefined> {
    return (await this.read(tenant, id))?.value
  }

  async list(tenant: string): Promise<T[]> {
    const values: T[] = []
    for await (const records of pagesOf(this, tenant)) for (const { value } of records) values.push(value)
    return values
  }

  async put(tenant: string, id: string, value: T, options: PutOptions = {}): Promise<void> {
    const { expiresAtMs } = options
    await this.#write([{ kind: 'put', collection: this.name, tenant, id, value, expiresAtMs }], options)
  }

  async delete(tenant: string, id: string, options: WriteOptions = {}): Promise<void> {
    await this.#write([{ kind: 'delete', collection: this.name, tenant, id }], options)
  }
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const DEFAULT_PAGE_BYTES = 4 * 1024 * 1024

/** Limits of a range, with defaults. */
export function pageLimits({ limit, maxBytes }: { readonly limit?: number; readonly maxBytes?: number }): {
  readonly limit: number
  readonly maxBytes: number
} {
  return {
    limit: Math.min(MAX_LIMIT, Math.max(1, limit ?? DEFAULT_LIMIT)),
    maxBytes: maxBytes ?? DEFAULT_PAGE_BYTES,
  }
}

/** Maximum number of tenants of a listing without a limit. */
export const DEFAULT_TENANTS = 100
