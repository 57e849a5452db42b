/** Errors of the record store: what stops the boot, keys that cannot be kept apart, and disks that are full. */
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
  storage_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the disk takes no records at the moment; it may be full',
  },
  storage_overloaded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many records wait to be written; try again later',
  },
  record_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (bytes: number, limit: number) => `a record of ${bytes} bytes is larger than the limit of ${limit}`,
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
