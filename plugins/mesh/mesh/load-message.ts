/**
 * Messages of the channel `loads`: the requests that a gateway has in flight.
 *
 * ```
 * version (1 byte) | part (1 byte, from 0) | worker hash (6 bytes), requests (2 bytes) | …
 * ```
 * Numbers are little-endian. A message replaces the earlier ones of its sender; further parts add to it.
 */

const VERSION = 1
const HEADER_BYTES = 2
const HASH_BYTES = 6
const ENTRY_BYTES = 8
/** Entries of a part, which stays below 64 KiB. */
const PART_ENTRIES = 8_000
const MAX_REQUESTS = 0xffff

/** Requests in flight by worker hash; workers without any are left out. */
export type Loads = ReadonlyMap<number, number>

/** @returns the parts of the message, at least one */
export function encodeLoads(loads: Loads): Buffer[] {
  const entries = [...loads]
  const parts: Buffer[] = []
  do {
    const from = parts.length * PART_ENTRIES
    const own = entries.slice(from, from + PART_ENTRIES)
    const part = Buffer.allocUnsafe(HEADER_BYTES + own.length * ENTRY_BYTES)
    part[0] = VERSION
    part[1] = parts.length
    for (let at = HEADER_BYTES, i = 0; i < own.length; i++, at += ENTRY_BYTES) {
      part.writeUIntLE(own[i][0], at, HASH_BYTES)
      part.writeUInt16LE(Math.min(own[i][1], MAX_REQUESTS), at + HASH_BYTES)
    }
    parts.push(part)
  } while (parts.length * PART_ENTRIES < entries.length)
  return parts
}

/** @returns null for a message of another version or length */
export function decodeLoads(message: Buffer): { readonly isFirst: boolean; readonly loads: Loads } | null {
  if (message.length < HEADER_BYTES || message[0] !== VERSION) return null
  if ((message.length - HEADER_BYTES) % ENTRY_BYTES !== 0) return null
  const loads = new Map<number, number>()
  for (let at = HEADER_BYTES; at < message.length; at += ENTRY_BYTES)
    loads.set(message.readUIntLE(at, HASH_BYTES), message.readUInt16LE(at + HASH_BYTES))
  return { isFirst: message[1] === 0, loads }
}
