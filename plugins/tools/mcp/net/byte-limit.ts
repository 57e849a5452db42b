/** Limits the size of a response of a tool server, and the rate of a stream without end. */
import { EventCounter } from '#kernel'

/** The server exceeded a size limit; reading the response stops. */
export class ByteLimitExceeded extends Error {
  constructor(maxBytes: number) {
    super(`the server sent more than ${maxBytes} bytes`)
    this.name = 'ByteLimitExceeded'
  }
}

/** Counts the bytes of one response. */
export interface ByteLimit {
  /** @throws ByteLimitExceeded */
  take(chunk: Buffer): void
}

/** Cost of an event in addition to its bytes: parsing a small event takes far longer than receiving it. */
const EVENT_COST = 2_048

/** Limit for the response to one request. */
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
 * Limit for the server's own event stream, which stays open: the limit per minute, plus the same amount at the start.
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
