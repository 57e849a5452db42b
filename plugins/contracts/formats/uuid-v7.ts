/** Ids of things that are registered: UUIDs whose order is the order in which they were made. */
import { randomBytes } from 'node:crypto'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const SEQUENCE_LIMIT = 0x1000

let lastMs = 0
let sequence = 0

/**
 * A version 7 UUID, greater as text than every one made before it in this process.
 *
 * @param nowMs Unix milliseconds
 * @source RFC 9562 section 5.7 and 6.2 method 1: the 12 bits after the version count within a millisecond
 */
export function uuidV7(nowMs = Date.now()): string {
  sequence = nowMs > lastMs ? 0 : sequence + 1
  lastMs = Math.max(nowMs, lastMs)
  if (sequence === SEQUENCE_LIMIT) {
    lastMs += 1
    sequence = 0
  }
  const time = lastMs.toString(16).padStart(12, '0')
  const tail = randomBytes(8)
  tail[0] = (tail[0] & 0x3f) | 0x80
  const random = tail.toString('hex')
  const counter = sequence.toString(16).padStart(3, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${random.slice(0, 4)}-${random.slice(4)}`
}

/** Any version, either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
