/**
 * Scans long bodies in steps and in turn, so that no request waits for the complete scan of another body.
 */

import { JsonScan } from '../wire/json-scan.ts'
import type { ScannedBody } from './json-body.ts'

/** Shorter bodies are scanned when they are first read. */
export const MIN_LONG_BYTES = 262_144
/** Bytes per step; a step takes less than a millisecond for any input. */
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
   * @param isWanted false once the request has ended; the scan is then dropped
   * @param done called asynchronously; must not throw
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
      // Back of the queue: a short body does not wait for a long one.
      if (state === 'more') this.#waiting.push(next)
      else next.done({ scan, state })
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}
