/**
 * Counts the requests that are answered in the turn of the event loop in which they came. The server library serves all
 * pipelined requests of a packet in one turn as long as each gets its response at once; it disconnects their client when one
 * does not. @hot
 */

/** Further requests get their responses in a later turn. Clients that do not pipeline notice nothing. */
const MAX_ANSWERED = 100

export class TurnLoad {
  /** Time at which the first request of this turn began. */
  #beganAtMs = Number.POSITIVE_INFINITY
  #answered = 0
  readonly #reset = () => {
    this.#beganAtMs = Number.POSITIVE_INFINITY
    this.#answered = 0
  }

  /** Whether the next request must not be answered in this turn. */
  get isFull(): boolean {
    return this.#answered >= MAX_ANSWERED
  }

  /** @param startedAtMs of the request, `performance.now()` */
  began(startedAtMs: number): void {
    if (startedAtMs >= this.#beganAtMs) return
    this.#beganAtMs = startedAtMs
    setImmediate(this.#reset)
  }

  /** @param startedAtMs of the request, which may have begun in an earlier turn */
  ended(startedAtMs: number): void {
    if (startedAtMs >= this.#beganAtMs) this.#answered++
  }
}
