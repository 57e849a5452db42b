/** Server-sent events as guests see them: read from whole blocks of bytes, written back as whole blocks. */

import { nextEventEnd } from '#kernel'
import { readEvent } from '#shared'
import type { StreamEvent } from '../threads/guest-task.ts'

/** Ends streams of the chat style; never shown to guests. */
export const DONE = '[DONE]'

/** One block of the stream, up to and with its empty line. */
export interface EventBlock {
  readonly bytes: Buffer
  /** Null for comments, for [DONE] and for blocks without data: guests do not see them. */
  readonly event: StreamEvent | null
  readonly isDone: boolean
  /** Fields beside name and data, such as `id: 7\n`; they stay with the first event that comes of this one. */
  readonly otherFields: string
}

/** @param events whole events, lines ended by LF, CR LF or CR */
export function readBlocks(events: Buffer): EventBlock[] {
  const blocks: EventBlock[] = []
  let start = 0
  for (let end = nextEventEnd(events, 0); end >= 0; end = nextEventEnd(events, end)) {
    blocks.push(readBlock(events.subarray(start, end)))
    start = end
  }
  // What has no end is no event, and passes as it is.
  if (start < events.length) blocks.push(opaque(events.subarray(start)))
  return blocks
}

function readBlock(bytes: Buffer): EventBlock {
  const found = readEvent(bytes)
  if (found === null) return opaque(bytes)
  const { name, data, otherFields } = found
  if (data === DONE) return { ...opaque(bytes), isDone: true }
  return { bytes, event: { name, data }, isDone: false, otherFields }
}

function opaque(bytes: Buffer): EventBlock {
  return { bytes, event: null, isDone: false, otherFields: '' }
}
