/**
 * The record store contract: JSON records under a tenant, written in atomic batches, read by id or by range.
 *
 * Two stores exist: `Store` is this gateway's own, `SharedStore` one that several gateways may use at once. What both
 * must do is written down as a test suite that every implementation passes.
 */
import { token } from '../token.ts'

/**
 * What a resolved write has survived. `relaxed`: the end of this process. `synced`: the loss of power; writes that
 * wait at the same time share the cost.
 */
export type Durability = 'synced' | 'relaxed'

export interface WriteOptions {
  /** Default `relaxed`. */
  readonly durability?: Durability
}

export interface PutOptions extends WriteOptions {
  /** Milliseconds since 1970. From then on nobody sees the record; it is removed some time later. */
  readonly expiresAtMs?: number
}

/** A value whose JSON its owner has already; it is stored as it stands and read as any other. Never put inside another value. */
export class JsonText {
  readonly text: string

  /** @param text valid JSON */
  constructor(text: string) {
    this.text = text
  }
}

/** A record with what is known about it. */
export interface StoredRecord<T> {
  readonly id: string
  readonly value: T
  /** Another one after each write of the record; says nothing about order. */
  readonly version: string
  /** Null when it stays. */
  readonly expiresAtMs: number | null
}

/** Ids are ordered by their UTF-8 bytes. */
export interface RangeOptions {
  /** The first id, itself included. Default: from the beginning. */
  readonly from?: string
  /** The end, itself not included. Default: to the end. */
  readonly to?: string
  /** From the highest id down. */
  readonly reverse?: boolean
  /** Cursor: only what comes beyond this id in the direction of reading, whether it still exists or not. */
  readonly after?: string
  /** Records at most, 1 to 1,000. Default 100. */
  readonly limit?: number
  /** Bytes of JSON at most, but always one record. Default 4 MiB. */
  readonly maxBytes?: number
}

export interface RecordPage<T> {
  /** May be fewer than the limit, even none, while there is more. */
  readonly records: readonly StoredRecord<T>[]
  /** What `after` must be to go on; null at the end. */
  readonly next: string | null
}

/** Records of one collection, such as `workers`. Every key carries its tenant. */
export interface Collection<T> {
  readonly name: string
  get(tenant: string, id: string): Promise<T | undefined>
  /** Like `get`, with version and expiry. */
  read(tenant: string, id: string): Promise<StoredRecord<T> | undefined>
  /** In the order asked for; undefined where there is none. */
  getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]>
  /** All records of a tenant in order of id: for collections that are known to be small. */
  list(tenant: string): Promise<T[]>
  range(tenant: string, options?: RangeOptions): Promise<RecordPage<T>>
  /** Tenants that have records here, in order, those beyond `after` only; at most `limit` (default 100). */
  tenants(options?: { readonly after?: string; readonly limit?: number }): Promise<string[]>
  put(tenant: string, id: string, value: T, options?: PutOptions): Promise<void>
  /** Removing what is not there is no error. */
  delete(tenant: string, id: string, options?: WriteOptions): Promise<void>
}

/** The record that a change is about. */
interface ChangeTarget {
  readonly collection: string
  readonly tenant: string
  readonly id: string
  /** Only if the record has this version; null: only if there is none. Left out: whatever there is. */
  readonly onlyIf?: string | null
}

/** One step of an atomic write. `check` changes nothing and only demands its `onlyIf`. */
export type Change =
  /** `value`: any JSON value, or its `JsonText`. */
  | (ChangeTarget & { readonly kind: 'put'; readonly value: unknown; readonly expiresAtMs?: number })
  | (ChangeTarget & { readonly kind: 'delete' })
  | (ChangeTarget & { readonly kind: 'check'; readonly onlyIf: string | null })

export interface StoreService {
  /**
   * @param name letters, digits and hyphens
   * @throws invalid_collection_name
   */
  collection<T>(name: string): Collection<T>
  /**
   * Makes all changes or none, over any collections and tenants. Conditions are about the time before the write; of two
   * changes of one record the last one stays.
   * @returns the version that the written records have now; null when a condition did not hold and nothing was changed
   * @throws invalid_record_key, record_too_large, storage_overloaded (503) when too much waits already, or
   * storage_failed, storage_unavailable (503) when the outcome is unknown
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<string | null>
}

/** The gateway's own records. One process has them at a time. */
export const Store = token<StoreService>('store')

/** Records that several gateways share. Who needs history uses it when a plugin provides it, and `Store` otherwise. */
export const SharedStore = token<StoreService>('shared-store')

/** Tenant of records that belong to the gateway itself, such as its workers. */
export const GATEWAY_TENANT = '_gateway'
