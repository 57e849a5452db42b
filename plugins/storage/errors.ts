/** Errors of the record store: what stops the boot, and keys that cannot be kept apart. */
import { defineErrors } from '#kernel'

export const storageErrors = defineErrors('storage', {
  storage_locked: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string) =>
      `the data directory ${dir} is in use by another process; stop that one or set another storage.dir`,
  },
  storage_unreadable: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string, problem: string) => `cannot open the data directory ${dir}: ${problem}`,
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
  invalid_record_key: {
    kind: 'bad_request',
    source: 'client',
    text: (part: string) => `the ${part} of a record holds characters that a key cannot have`,
  },
  invalid_collection_name: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) =>
      `the collection name ${JSON.stringify(name)} is not made of letters, digits and hyphens`,
  },
})
