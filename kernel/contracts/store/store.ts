/**
 * The record store contract: JSON records by tenant, written in atomic batches, read by id or by range.
 *
 * `Store` belongs to one gateway, `SharedStore` is used by several gateways at once. A contract test suite runs over every
 * implementation.
 */
import { token } from '../token.ts'

/**
 * What a resolved write survives. `relaxed`: the end of the process. `synced`: power loss; concurrent writes share the
 * cost of a sync.
 */
export type Durability = 'synced' | 'relaxed'

export interface WriteOptions {
  /** Default `relaxed`. */
  readonly durability?: Durability
}

export interface PutOptions extends WriteOptions {
  /** Milliseconds since 1970. Then the record is no longer returned; it is deleted later. */
  readonly expiresAtMs?: number
}

/** A value that is already serialized. Must not be nested in another value. */
export class JsonText {
  readonly text: string

  /** @param text valid JSON */
  constructor(text: string) {
    this.text = text
  }
}

/** A record with version and expiry. */
export interface StoredRecord<T> {
  readonly id: string
  readonly value: T
  /** Changes with each write of the record; not ordered. */
  readonly version: string
  /** Null if the record does not expire. */
  readonly expiresAtMs: number | null
}

/** Ids are ordered by their UTF-8 bytes. */
export interface RangeOptions {
  /** First id, inclusive. Default: from the beginning. */
  readonly from?: string
  /** Last id, exclusive. Default: to the end. */
  readonly to?: string
  /** In descending order. */
  readonly reverse?: boolean
  /** Cursor: starts after this id in the direction of reading; the record need not exist. */
  readonly after?: string
  /** Maximum number of records, 1 to 1,000. Default 100. */
  readonly limit?: number
  /** Maximum bytes of JSON, but at least one record. Default 4 MiB. */
  readonly maxBytes?: number
}

export interface RecordPage<T> {
  /** May be fewer than the limit, even none, although there are more. */
  readonly records: readonly StoredRecord<T>[]
  /** Value of `after` for the next page; null at the end. */
  readonly next: string | null
}

/**
 * Records of one collection, such as `workers`. Every key carries its tenant. A read that includes a record that was altered
 * in the store so that it is no JSON, or not of the collection's form, throws record_unreadable (500).
 */
export interface Collection<T> {
  readonly name: string
  get(tenant: string, id: string): Promise<T | undefined>
  /** Like `get`, with version and expiry. */
  read(tenant: string, id: string): Promise<StoredRecord<T> | undefined>
  /** In the order of `ids`; undefined for missing records. */
  getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]>
  /** All records of a tenant in order of id; for small collections. */
  list(tenant: string): Promise<T[]>
  range(tenant: string, options?: RangeOptions): Promise<RecordPage<T>>
  /** Tenants with records in this collection, in order, after `after`; at most `limit` (default 100). */
  tenants(options?: { readonly after?: string; readonly limit?: number }): Promise<string[]>
  put(tenant: string, id: string, value: T, options?: PutOptions): Promise<void>
  /** Deleting a missing record is not an error. */
  delete(tenant: string, id: string, options?: WriteOptions): Promise<void>
}

/** The record to change. */
interface ChangeTarget {
  readonly collection: string
  readonly tenant: string
  readonly id: string
  /** Condition: the record has this version; null: it does not exist; omitted: none. */
  readonly onlyIf?: string | null
}

/** One step of an atomic write. `check` only adds its condition. */
export type Change =
  /** `value`: any JSON value, or its `JsonText`. */
  | (ChangeTarget & { readonly kind: 'put'; readonly value: unknown; readonly expiresAtMs?: number })
  | (ChangeTarget & { readonly kind: 'delete' })
  | (ChangeTarget & { readonly kind: 'check'; readonly onlyIf: string | null })

/** Stores records in collections. */
export interface StoreService {
  /**
   * @param name letters, digits and hyphens
   * @param isValid whether a stored value has the form of the collection; reads of another one throw record_unreadable
   * @throws invalid_collection_name
   */
  collection<T>(name: string, isValid?: (value: unknown) => boolean): Collection<T>
  /**
   * Makes all changes or none, over any collections and tenants. Conditions apply to the state before the write; the last
   * of several changes of one record wins.
   * @returns the new version of the written records; null if a condition failed and nothing was changed
   * @throws invalid_record_key, record_too_large, storage_overloaded (503), or storage_failed, storage_unavailable (503)
   * if the outcome is unknown
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<string | null>
}

/** Records of this gateway; used by one process at a time. */
export const Store = token<StoreService>('store')

/** Records that several gateways share. History uses it if a plugin provides it, else `Store`. */
export const SharedStore = token<StoreService>('shared-store')

/** Tenant of records that belong to the gateway itself, such as its workers. */
export const GATEWAY_TENANT = '_gateway'
