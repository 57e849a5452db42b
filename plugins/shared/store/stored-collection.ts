/** What the collections of every store have in common: writes of single records go through the store. */
import type {
  Collection,
  PutOptions,
  RangeOptions,
  RecordPage,
  StoredRecord,
  StoreService,
  WriteOptions,
} from '#kernel'
import { pagesOf } from './record-pages.ts'

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
