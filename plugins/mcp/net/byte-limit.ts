/** How much one answer of a tool server may hold, and how fast a stream that never ends may come. */

/** The server sent more than it may; the answer is given up. */
export class TooMuchData extends Error {
  constructor(maxBytes: number) {
    super(`the server sent more than ${maxBytes} bytes`)
    this.name = 'TooMuchData'
  }
}

/** Counts the bytes of one answer. */
export interface ByteLimit {
  /** @throws TooMuchData */
  take(chunk: Uint8Array): void
}

/** An answer to one request: so much and no more. */
export function wholeLimit(maxBytes: number): ByteLimit {
  let left = maxBytes
  return {
    take(chunk) {
      left -= chunk.length
      if (left < 0) throw new TooMuchData(maxBytes)
    },
  }
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13

/**
 * A stream of the server's own that stays open: no event larger than the limit, and over time no more than the limit
 * each minute, with as much to begin with.
 */
export function streamLimit(maxBytes: number, now: () => number = Date.now): ByteLimit {
  let allowance = maxBytes
  let lastMs = now()
  let eventBytes = 0
  let lineBytes = 0
  return {
    take(chunk) {
      const nowMs = now()
      allowance = Math.min(maxBytes, allowance + ((nowMs - lastMs) / 60_000) * maxBytes) - chunk.length
      lastMs = nowMs
      if (allowance < 0) throw new TooMuchData(maxBytes)
      for (const byte of chunk) {
        eventBytes++
        if (byte === LINE_FEED) {
          if (lineBytes === 0) eventBytes = 0
          lineBytes = 0
        } else if (byte !== CARRIAGE_RETURN) lineBytes++
      }
      if (eventBytes > maxBytes) throw new TooMuchData(maxBytes)
    },
  }
}
