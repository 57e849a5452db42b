/** Finds whom a presented key stands for, without telling by its timing how much of the key was right. @hot */
import { hash, randomFillSync } from 'node:crypto'
import type { Identity } from '#kernel'
import type { ConfiguredKey } from './keys.ts'

const SALT_BYTES = 32
/** Longer keys get memory of their own. */
const KEPT_BYTES = 4_096
/** Of a UTF-16 unit in UTF-8. */
const MAX_UNIT_BYTES = 3

/**
 * What is digested: a salt, fresh in each thread, so that nobody can choose a key for the digest it will have, and behind it
 * the key. Bytes, since of a text `hash` would make bytes each time anew.
 */
const salted = Buffer.alloc(SALT_BYTES + KEPT_BYTES)
randomFillSync(salted, 0, SALT_BYTES)

/**
 * Keys by salted SHA-256 digest. A look-up compares digests, never keys: that a wrong digest shares a beginning
 * with a right one says nothing about the key. The keys themselves are not kept.
 *
 * One look-up costs a microsecond (crypto.hash with a base64 digest), flat in the number of keys, which is why no
 * cache of verified headers stands in front: such a cache would hold the keys in plain text to save that.
 */
export class KeyTable {
  readonly #identities = new Map<string, Identity>()

  constructor(...groups: (readonly ConfiguredKey[])[]) {
    for (const group of groups) {
      // The first owner of a key keeps it.
      for (const { key, identity } of group) {
        const digest = digestOf(key)
        if (!this.#identities.has(digest)) this.#identities.set(digest, identity)
      }
    }
  }

  get size(): number {
    return this.#identities.size
  }

  find(key: string): Identity | undefined {
    return this.#identities.get(digestOf(key))
  }
}

function digestOf(key: string): string {
  const most = SALT_BYTES + key.length * MAX_UNIT_BYTES
  const bytes = most <= salted.length ? salted : Buffer.concat([salted], most)
  const end = SALT_BYTES + bytes.write(key, SALT_BYTES, 'utf8')
  const digest = hash('sha256', bytes.subarray(0, end), 'base64')
  bytes.fill(0, SALT_BYTES, end)
  return digest
}
