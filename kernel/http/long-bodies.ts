/**
 * Looks through long bodies a step at a time, one body after the other, so that no request on the thread waits for the
 * whole of somebody else's body.
 */

import { JsonScan } from '../wire/json-scan.ts'
import type { ScannedBody } from './json-body.ts'

/** Shorter bodies are looked through when somebody asks. */
export const MIN_LONG_BYTES = 262_144
/** Of a step: less than a millisecond, whatever the bytes. */
const STEP_BYTES = 65_536

interface LongBody {
  readonly body: Buffer
  readonly scan: JsonScan
  readonly isWanted: () => boolean
  readonly done: (scanned: ScannedBody) => void
}

export class LongBodies {
  readonly #waiting: LongBody[] = []
  readonly #maxDepth: number
  #isRunning = false

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth
  }

  /**
   * @param isWanted false once nobody waits for the outcome
   * @param done called later, unless it is not wanted any more; must not throw
   */
  scan(body: Buffer, isWanted: () => boolean, done: (scanned: ScannedBody) => void): void {
    const scan = new JsonScan().begin(body, this.#maxDepth)
    this.#waiting.push({ body, scan, isWanted, done })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    setImmediate(() => this.#step())
  }

  #step(): void {
    this.#isRunning = false
    const next = this.#waiting.shift()
    if (next === undefined) return
    if (next.isWanted()) {
      const { scan, body } = next
      const state = scan.run(Math.min(body.length, scan.reached + STEP_BYTES))
      // Turns are taken, so that a short one does not wait for a long one.
      if (state === 'more') this.#waiting.push(next)
      else next.done({ scan, state })
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}
