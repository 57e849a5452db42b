/**
 * Messages of the channel `loads`: the requests that a gateway has in flight.
 *
 * ```
 * version (1 byte) | part (1 byte, from 0) | worker hash (8 bytes), requests (2 bytes) | …
 * ```
 * Numbers are little-endian. A message replaces all that its sender said before; further parts add to it.
 */

const VERSION = 1
const HEADER_BYTES = 2
const ENTRY_BYTES = 10
/** Entries of a part, which stays below 64 KiB. */
const PART_ENTRIES = 6_000
const MAX_REQUESTS = 0xffff

/** Requests in flight by worker hash; workers without any are left out. */
export type Loads = ReadonlyMap<bigint, number>

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
      part.writeBigUInt64LE(own[i][0], at)
      part.writeUInt16LE(Math.min(own[i][1], MAX_REQUESTS), at + 8)
    }
    parts.push(part)
  } while (parts.length * PART_ENTRIES < entries.length)
  return parts
}

/** @returns null for a message of another version or length */
export function decodeLoads(message: Buffer): { readonly isFirst: boolean; readonly loads: Loads } | null {
  if (message.length < HEADER_BYTES || message[0] !== VERSION) return null
  if ((message.length - HEADER_BYTES) % ENTRY_BYTES !== 0) return null
  const loads = new Map<bigint, number>()
  for (let at = HEADER_BYTES; at < message.length; at += ENTRY_BYTES)
    loads.set(message.readBigUInt64LE(at), message.readUInt16LE(at + 8))
  return { isFirst: message[1] === 0, loads }
}
