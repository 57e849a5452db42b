/** The record store contract: small JSON records under a tenant, durable when a data directory is set. */
import { token } from './token.ts'

/** Records of one collection, such as `workers`. Every key carries its tenant. */
export interface Collection<T> {
  get(tenant: string, id: string): Promise<T | undefined>
  put(tenant: string, id: string, value: T): Promise<void>
  /** Removing what is not there is no error. */
  delete(tenant: string, id: string): Promise<void>
  /** All records of a tenant in order of id. */
  list(tenant: string): Promise<T[]>
}

export interface StoreService {
  /** @param name letters, digits and hyphens */
  collection<T>(name: string): Collection<T>
}

export const Store = token<StoreService>('store')

/** Tenant of records that belong to the gateway itself, such as its workers. */
export const GATEWAY_TENANT = '_gateway'
