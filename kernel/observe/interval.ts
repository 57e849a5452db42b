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
