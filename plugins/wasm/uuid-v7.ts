/** Ids of modules: UUIDs whose order as text is the order in which they were made. */
import { randomBytes } from 'node:crypto'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

let lastMs = 0

/** @source RFC 9562 section 5.7; a millisecond is used once, which is enough for registrations */
export function uuidV7(nowMs = Date.now()): string {
  lastMs = Math.max(nowMs, lastMs + 1)
  const bytes = randomBytes(16)
  bytes.writeUIntBE(lastMs, 0, 6)
  bytes[6] = (bytes[6] & 0x0f) | 0x70
  bytes[8] = (bytes[8] & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Any version, either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
