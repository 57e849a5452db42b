/**
 * Counts the requests of one turn of the event loop. The server library serves all pipelined requests of a packet in one
 * turn as long as each gets its response at once; it disconnects their client when one does not. @hot
 */

/** Further requests get their responses in a later turn. Clients that do not pipeline notice nothing. */
const MAX_REQUESTS = 100

export class TurnLoad {
  #requests = 0
  readonly #reset = () => {
    this.#requests = 0
  }

  /** Counts one request. @returns whether it must not be answered in this turn */
  isFull(): boolean {
    if (this.#requests === 0) setImmediate(this.#reset)
    return ++this.#requests > MAX_REQUESTS
  }
}
