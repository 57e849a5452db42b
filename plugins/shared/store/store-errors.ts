/** Errors that every implementation of the Store contract answers with. */
import { defineErrors } from '#kernel'

export const storeErrors = defineErrors('store', {
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
  storage_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: (problem: string) => `records cannot be kept or read at the moment: ${problem}`,
  },
  storage_overloaded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many records wait to be written or read; try again later',
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
    text: (part: string) => `the ${part} of a record is too long or holds characters that a key cannot have`,
  },
  invalid_collection_name: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) =>
      `the collection name ${JSON.stringify(name)} is not made of at most 64 letters, digits and hyphens`,
  },
})
