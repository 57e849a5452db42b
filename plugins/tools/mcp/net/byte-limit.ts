/** How much one answer of a tool server may hold, and how fast a stream that never ends may come. */
import { EventCounter } from '#kernel'

/** The server sent more than it may; the answer is given up. */
export class ByteLimitExceeded extends Error {
  constructor(maxBytes: number) {
    super(`the server sent more than ${maxBytes} bytes`)
    this.name = 'ByteLimitExceeded'
  }
}

/** Counts the bytes of one answer. */
export interface ByteLimit {
  /** @throws ByteLimitExceeded */
  take(chunk: Buffer): void
}

/** What one event costs beside its bytes: reading a small one takes far longer than receiving it. */
const EVENT_COST = 2_048

/** An answer to one request: so much and no more. */
export function wholeLimit(maxBytes: number, isEventStream: boolean): ByteLimit {
  const events = new EventCounter()
  let left = maxBytes
  return {
    take(chunk) {
      left -= chunk.length
      if (isEventStream) left -= events.push(chunk) * EVENT_COST
      if (left < 0) throw new ByteLimitExceeded(maxBytes)
    },
  }
}

/**
 * A stream of the server's own that stays open: over time no more than the limit each minute, with as much to begin with.
 */
export function streamLimit(maxBytes: number, now: () => number = Date.now): ByteLimit {
  const events = new EventCounter()
  let allowance = maxBytes
  let lastMs = now()
  return {
    take(chunk) {
      const nowMs = now()
      allowance = Math.min(maxBytes, allowance + ((nowMs - lastMs) / 60_000) * maxBytes)
      allowance -= chunk.length + events.push(chunk) * EVENT_COST
      lastMs = nowMs
      if (allowance < 0) throw new ByteLimitExceeded(maxBytes)
    },
  }
}
