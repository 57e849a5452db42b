/** Finds the store for the records of a plugin that uses `SharedStore` and `Store`. */
import { type Host, SharedStore, Store, type StoreService } from '#kernel'
import { storeErrors } from './store-errors.ts'

/**
 * The store that several gateways share if there is one, else that of this gateway.
 *
 * @throws record_store_missing
 */
export function findRecordStore(host: Pick<Host, 'find'>): {
  readonly store: StoreService
  readonly isShared: boolean
} {
  const shared = host.find(SharedStore)
  const store = shared ?? host.find(Store)
  if (store === undefined) throw storeErrors.record_store_missing()
  return { store, isShared: shared !== undefined }
}
