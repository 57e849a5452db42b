/**
 * The open requests of a server. Unlike a `Set`, whose old table after each growth keeps the requests of that moment alive
 * until the next full garbage collection: one request in ten outlived its end by many seconds. @hot
 */

/** A request that holds its index in the list. */
export interface ListedRequest {
  /** -1 outside the list, which sets it. */
  openIndex: number
}

export class OpenRequests<T extends ListedRequest> implements Iterable<T> {
  readonly #requests: T[] = []

  get size(): number {
    return this.#requests.length
  }

  add(request: T): void {
    if (request.openIndex < 0) request.openIndex = this.#requests.push(request) - 1
  }

  /** The last one moves to the free index. */
  delete(request: T): void {
    const index = request.openIndex
    if (index < 0) return
    request.openIndex = -1
    const last = this.#requests.pop() as T
    if (last === request) return
    this.#requests[index] = last
    last.openIndex = index
  }

  /** Iterates over a snapshot: requests may end meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return this.#requests.slice()[Symbol.iterator]()
  }
}
