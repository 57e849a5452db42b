/** Runs the edits of one answer in order: while an editor is at work, everything behind its text waits. @hot */

/** Steps that may wait for an editor before the worker is paused. */
const MAX_WAITING = 64

type Step = () => void

export interface EditQueueOptions {
  /** An editor or the receiver of the events has thrown: no steps follow. */
  readonly onError: (error: unknown) => void
  /** Too many steps wait for an editor, or no longer do. */
  readonly onFull: (isFull: boolean) => void
}

export class EditQueue {
  isClosed = false
  readonly #options: EditQueueOptions
  #waiting: Step[] = []
  #isBusy = false
  #isFull = false

  constructor(options: EditQueueOptions) {
    this.#options = options
  }

  /** Runs the step, once those before it have run. */
  run(step: Step): void {
    if (!this.#isBusy) {
      this.guard(step)
      return
    }
    this.#waiting.push(step)
    if (this.#isFull || this.#waiting.length < MAX_WAITING) return
    this.#isFull = true
    this.#options.onFull(true)
  }

  /** True if the step waits, and none behind it. */
  isLast(step: Step): boolean {
    return this.#waiting.at(-1) === step
  }

  /** Goes on with what an editor returned. Only as the end of a step. */
  settle<Value>(edited: Value | Promise<Value>, then: (passed: Value) => void): void {
    if (!(edited instanceof Promise)) {
      then(edited)
      return
    }
    this.#isBusy = true
    edited
      .then((passed) => {
        this.#isBusy = false
        if (this.isClosed) return
        then(passed)
        this.#runWaiting()
      })
      .catch((error: unknown) => this.#fail(error))
  }

  #runWaiting(): void {
    while (!this.#isBusy && !this.isClosed) {
      const step = this.#waiting.shift()
      if (step === undefined) break
      step()
    }
    if (!this.#isFull || this.#waiting.length > 0 || this.isClosed) return
    this.#isFull = false
    this.#options.onFull(false)
  }

  /** Returns undefined for an exception, which ends the answer. */
  guard<T>(step: () => T): T | undefined {
    try {
      return step()
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  #fail(error: unknown): void {
    if (this.isClosed) return
    this.close()
    this.#options.onError(error)
  }

  /** No steps follow. */
  close(): void {
    this.isClosed = true
    this.#waiting = []
  }
}
