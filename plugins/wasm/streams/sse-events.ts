/** Splits server-sent events into blocks. */
import { hasCarriageReturn, nextEventEnd } from '#kernel'
import { readEvent } from '#shared'
import type { StreamEvent } from '../threads/guest-task.ts'

/** End marker of chat streams; not shown to guests. */
export const DONE = '[DONE]'

/** A block of the stream including its empty line. */
export interface EventBlock {
  readonly bytes: Buffer
  /** Null for comments, [DONE] and blocks without data, which guests do not see. */
  readonly event: StreamEvent | null
  readonly isDone: boolean
  /** Other fields such as `id: 7\n`, which are kept with the first resulting event. */
  readonly otherFields: string
}

/** @param events complete events; lines end with LF, CR LF or CR */
export function readBlocks(events: Buffer): EventBlock[] {
  const blocks: EventBlock[] = []
  let start = 0
  const hasCr = hasCarriageReturn(events)
  for (let end = nextEventEnd(events, 0, hasCr); end >= 0; end = nextEventEnd(events, end, hasCr)) {
    blocks.push(readBlock(events.subarray(start, end)))
    start = end
  }
  // An incomplete event is passed on unchanged.
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
