/** Finds the owner of a key in a way that does not leak the key by timing. @hot */
import { hash } from 'node:crypto'
import type { ConfiguredKey, Identity } from '#kernel'

/** The right of a key on one plane. */
export interface Grant {
  readonly identity: Identity
  /** Milliseconds since 1970; Infinity for keys that do not expire. */
  readonly expiresAtMs: number
}

/** What a key opens; null where it opens nothing. */
export interface KeyGrants {
  readonly serving: Grant | null
  readonly admin: Grant | null
}

export interface TableKey extends KeyGrants {
  /** From `keyDigest`. */
  readonly digest: string
}

/**
 * Form in which keys are kept: SHA-256 as lower-case hex. A slow hash such as scrypt protects passwords, which can be
 * guessed; a generated key has 256 random bits, which cannot, at any speed of the hash. Keys that people choose are in the
 * configuration and not in the store.
 */
export function keyDigest(key: string): string {
  return hash('sha256', key)
}

/**
 * Keys by digest, whose lookup does not depend on how much of a key is correct: the map compares hashes of digests, and a
 * caller cannot choose the digest of a key. Keys that were found are found again by a hash with a secret seed of the process.
 */
export class KeyTable {
  readonly #grants = new Map<string, KeyGrants>()
  /** Keys that were used, as sent: the digest takes 0.8 µs. bench: relay-json */
  readonly #used = new Map<string, KeyGrants>()

  constructor(...groups: (readonly TableKey[])[]) {
    for (const group of groups) {
      for (const { digest, serving, admin } of group) {
        const earlier = this.#grants.get(digest)
        // On duplicates, the first one is used on each plane.
        this.#grants.set(digest, {
          serving: earlier?.serving ?? serving,
          admin: earlier?.admin ?? admin,
        })
      }
    }
  }

  get size(): number {
    return this.#grants.size
  }

  find(key: string): KeyGrants | undefined {
    const used = this.#used.get(key)
    if (used !== undefined) return used
    const found = this.#grants.get(keyDigest(key))
    if (found !== undefined) this.#used.set(key, found)
    return found
  }
}

/** A key in the table: it opens the planes that its listing states. */
export function toTableKey(
  digest: string,
  { id, owner, isServing, role, expiresAtMs, models, routes }: Omit<ConfiguredKey, 'name' | 'setting'>,
): TableKey {
  const identity: Identity = Object.freeze({
    tenant: owner,
    role: isServing ? null : role,
    ...(id !== null && { keyId: id }),
    ...(models !== null && { models: new Set(models) }),
    ...(routes !== null && { routes: new Set(routes) }),
  })
  const grant = { identity, expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY }
  return { digest, serving: isServing ? grant : null, admin: role === null ? null : grant }
}
