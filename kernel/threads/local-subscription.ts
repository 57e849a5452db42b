/** One listener on this thread: takes its events one after another and holds a bounded number meanwhile. */
import type { TopicListener } from '../contracts/topic.ts'

export class LocalSubscription {
  readonly #listener: TopicListener<unknown>
  readonly #maxWaiting: number
  readonly #onEnd: (subscription: LocalSubscription) => void
  readonly #tooSlow: () => Error
  #waiting: unknown[] = []
  #isBusy = false
  #isOver = false

  /** @param onEnd called once, whatever ends it */
  constructor(
    listener: TopicListener<unknown>,
    maxWaiting: number,
    onEnd: (subscription: LocalSubscription) => void,
    tooSlow: () => Error,
  ) {
    this.#listener = listener
    this.#maxWaiting = maxWaiting
    this.#onEnd = onEnd
    this.#tooSlow = tooSlow
  }

  /** Never throws. */
  deliver(event: unknown): void {
    if (this.#isOver) return
    if (!this.#isBusy) this.#give(event)
    else if (this.#waiting.length < this.#maxWaiting) this.#waiting.push(event)
    else this.lose(this.#tooSlow())
  }

  /** Ends it and tells the listener why; a listener that throws at that is on its own. */
  lose(error: Error): void {
    if (this.#isOver) return
    this.close()
    try {
      this.#listener.onLost(error)
    } catch {
      // It was told; there is nobody else who could do anything about it.
    }
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#waiting = []
    this.#onEnd(this)
  }

  /** @returns true when the listener answers later */
  #give(event: unknown): boolean {
    try {
      const pending = this.#listener.onEvent(event)
      if (!(pending instanceof Promise)) return false
      this.#isBusy = true
      pending.then(
        () => this.#next(),
        (error: unknown) => this.lose(toError(error)),
      )
      return true
    } catch (error) {
      this.lose(toError(error))
      return false
    }
  }

  /** Still busy to whoever publishes meanwhile, so that the order holds. No recursion, however many wait. */
  #next(): void {
    let isPending = false
    let taken = 0
    while (taken < this.#waiting.length && !isPending && !this.#isOver)
      isPending = this.#give(this.#waiting[taken++])
    this.#waiting.splice(0, taken)
    this.#isBusy = isPending
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
