/** Errors of every implementation of the Store contract. */
import { defineErrors, GatewayError, retryAfter } from '#kernel'

export const storeErrors = defineErrors('store', {
  record_store_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'needs a store: enable postgres or storage under plugins',
  },
  storage_not_open: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the record store is not open',
  },
  storage_failed: {
    kind: 'internal',
    source: 'gateway',
    text: (verb: string, collection: string) => `cannot ${verb} a record of ${collection}`,
  },
  record_unreadable: {
    kind: 'internal',
    source: 'gateway',
    text: (collection: string, id: string) =>
      `the stored record ${JSON.stringify(id)} of ${collection} is damaged; delete it, or restore the store from a backup`,
  },
  storage_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: (problem: string) => `the record store is unavailable: ${problem}`,
  },
  storage_overloaded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the record store is overloaded; retry later',
  },
  record_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (bytes: number, limit: number) =>
      `a record of ${bytes} characters is larger than the limit of ${limit}`,
  },
  invalid_record_key: {
    kind: 'bad_request',
    source: 'client',
    text: (part: string) =>
      `the ${part} of a record must be well-formed Unicode without NUL, at most 1024 bytes`,
  },
  invalid_collection_name: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) =>
      `a collection name must be 1 to 64 letters, digits and hyphens (got ${JSON.stringify(name)})`,
  },
})

/** Time after which a client may try again, seconds. */
const RETRY_SECS = 5

/** Error of a store that is down: storage_unavailable (503) with retry-after. @param problem why; clients see it */
export function storageUnavailable(problem: string, cause?: unknown): GatewayError {
  return storeErrors.storage_unavailable.with({ ...retryAfter(RETRY_SECS), cause }, problem)
}

/** storage_overloaded (503) with retry-after. */
export function storageOverloaded(): GatewayError {
  return storeErrors.storage_overloaded.with(retryAfter(1))
}

/** Whether a stored record is damaged, so that reading it again does not help. */
export function isUnreadableRecord(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'record_unreadable'
}
