/** The clock and the intervals that the parts of a thread share. @hot */

const resolved = Promise.resolve()
let readingMs = 0

function forget(): void {
  readingMs = 0
}

/**
 * `performance.now()` of the first call in this callback of the event loop. A reading takes 150 ns on virtual machines, and
 * the end of a response needs seven. bench: relay-json
 */
export function turnNowMs(): number {
  if (readingMs === 0) {
    readingMs = performance.now()
    // Microtasks run when the callback returns.
    void resolved.then(forget)
  }
  return readingMs
}

/** A repeated check that runs only while there is something to check; never keeps the process alive. */
export class Interval {
  readonly #periodMs: number
  readonly #check: () => void
  #timer: NodeJS.Timeout | null = null

  /** @param check must not throw */
  constructor(periodMs: number, check: () => void) {
    this.#periodMs = periodMs
    this.#check = check
  }

  /** @returns false if it runs already */
  start(): boolean {
    if (this.#timer !== null) return false
    this.#timer = setInterval(this.#check, this.#periodMs).unref()
    return true
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}
