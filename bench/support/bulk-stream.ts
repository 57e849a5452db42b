/** The long event streams of the slow-reader scenarios; worker and client compute the same hashes. */
import { createHash } from 'node:crypto'

/** Bytes of one event, framing included. */
const EVENT_BYTES = 16_384
export const BULK_EVENTS = 4_096
export const BULK_BYTES = BULK_EVENTS * EVENT_BYTES
/** A stream of messages without `message_stop` counts as truncated. */
const END = '\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'

/** Event `index` of the stream, 0-based; every event differs. */
export function bulkEvent(index: number): Buffer {
  const event = Buffer.alloc(EVENT_BYTES, `${index} abcdefghijklmnopqrstuvwxyz0123456789 `)
  event.write('data: ', 0)
  const end = index === BULK_EVENTS - 1 ? END : '\n\n'
  event.write(end, EVENT_BYTES - end.length)
  return event
}

/** SHA-256 of the whole stream, 64 MiB. */
export function bulkSha256(): string {
  const hash = createHash('sha256')
  for (let index = 0; index < BULK_EVENTS; index++) hash.update(bulkEvent(index))
  return hash.digest('hex')
}

/** Text `index` of the long generation, 0-based, `EVENT_BYTES` long; every text differs. */
function bulkText(index: number): string {
  return ''.padEnd(EVENT_BYTES, `${index} abcdefghijklmnopqrstuvwxyz0123456789 `)
}

/** Text `index` as a chunk of a chat. */
export function bulkChunk(index: number): Buffer {
  const choices = [{ index: 0, delta: { content: bulkText(index) }, finish_reason: null }]
  const frame = {
    id: 'chatcmpl-bulk',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'bench',
  }
  return Buffer.from(`data: ${JSON.stringify({ ...frame, choices })}\n\n`)
}

/** SHA-256 of the whole text, 64 MiB. */
export function bulkTextSha256(): string {
  const hash = createHash('sha256')
  for (let index = 0; index < BULK_EVENTS; index++) hash.update(bulkText(index))
  return hash.digest('hex')
}
