/** Request ids: the client's if it is usable, otherwise a generated one. @hot */
import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ID_CHARS = 24
const BATCH = 256

/** Random letters for the next ids, made in batches: one random call and one slice per id. bench: relay-json */
const pool = Buffer.alloc(ID_CHARS * BATCH)
let used = pool.length

/** @returns the prefix and 24 random characters of A-Z, a-z, 0-9 */
export function makeRequestId(prefix: string): string {
  if (used === pool.length) refill()
  const id = prefix + pool.toString('latin1', used, used + ID_CHARS)
  used += ID_CHARS
  return id
}

function refill(): void {
  randomFillSync(pool)
  for (let i = 0; i < pool.length; i++) pool[i] = ALPHABET.charCodeAt(pool[i] % 62)
  used = 0
}

/** True for a value that may be echoed: not empty, printable ASCII only. */
export function isUsableRequestId(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code < 0x20 || code > 0x7e) return false
  }
  return value.length > 0
}
