/** The back-pressure of one response. */
import type { FlowControl } from '../contracts/request.ts'

export class ResponseFlow implements FlowControl {
  #holds = 0
  #waiting: (() => void)[] = []

  get isHeld(): boolean {
    return this.#holds > 0
  }

  hold(): void {
    this.#holds++
  }

  release(): void {
    if (--this.#holds > 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }

  whenReleased(resume: () => void): void {
    this.#waiting.push(resume)
  }
}
