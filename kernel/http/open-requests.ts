/**
 * The open requests of a server. A growing `Set` keeps the requests of its old table alive until the next full garbage
 * collection, which delayed the release of one request in ten by many seconds. @hot
 */

/** A request that holds its index in the list. */
export interface ListedRequest {
  /** Set by the list; -1 outside. */
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

  /** Moves the last request to the free index. */
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
