/**
 * The requests that a server has under way. A `Set` would do as well, but each time that it grows or shrinks it leaves a
 * table behind that the next full collection only takes away, and until then whatever was open at that moment: one
 * request in ten outlived its end by many seconds. @hot
 */

/** A request that knows its index in the list. */
export interface ListedRequest {
  /** -1 outside the list, which alone sets it. */
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

  /** Of those that are open now, whatever ends meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return this.#requests.slice()[Symbol.iterator]()
  }
}
