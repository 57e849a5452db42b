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

/** What one event costs beside its bytes: reading a small one takes far longer than receiving it. */
const EVENT_COST = 1_024
const LINE_FEED = 10
const CARRIAGE_RETURN = 13

/** An answer to one request: so much and no more. */
export function wholeLimit(maxBytes: number, isEventStream: boolean): ByteLimit {
  const events = new EventCounter()
  let left = maxBytes
  return {
    take(chunk) {
      left -= chunk.length
      if (isEventStream) left -= events.count(chunk) * EVENT_COST
      if (left < 0) throw new TooMuchData(maxBytes)
    },
  }
}

/**
 * A stream of the server's own that stays open: no event larger than the limit, and over time no more than the limit
 * each minute, with as much to begin with.
 */
export function streamLimit(maxBytes: number, now: () => number = Date.now): ByteLimit {
  const events = new EventCounter()
  let allowance = maxBytes
  let lastMs = now()
  return {
    take(chunk) {
      const nowMs = now()
      allowance = Math.min(maxBytes, allowance + ((nowMs - lastMs) / 60_000) * maxBytes)
      allowance -= chunk.length + events.count(chunk) * EVENT_COST
      lastMs = nowMs
      if (allowance < 0 || events.openBytes > maxBytes) throw new TooMuchData(maxBytes)
    },
  }
}

/** Finds where events end. */
class EventCounter {
  /** Of the event that has not ended yet. */
  openBytes = 0
  #lineBytes = 0

  count(chunk: Uint8Array): number {
    let ended = 0
    for (const byte of chunk) {
      this.openBytes++
      if (byte === LINE_FEED) {
        if (this.#lineBytes === 0) {
          this.openBytes = 0
          ended++
        }
        this.#lineBytes = 0
      } else if (byte !== CARRIAGE_RETURN) this.#lineBytes++
    }
    return ended
  }
}
