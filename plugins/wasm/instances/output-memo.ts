/** What a module put out last, already read: most say the same about every request. @hot */

import type { PhaseItem } from '../threads/guest-task.ts'
import { type PhaseOutput, readPhaseOutput, readToolOutput } from './guest-output.ts'

/** Longer outputs are read each time, bytes. */
const MAX_KEPT_BYTES = 1_024

export class OutputMemo {
  readonly #point: PhaseItem['point']
  #bytes: Buffer | null = null
  #output: PhaseOutput | null = null

  constructor(point: PhaseItem['point']) {
    this.#point = point
  }

  /** @throws BadOutput */
  readonly read = (output: Buffer | null): PhaseOutput => {
    if (output !== null && this.#output !== null && this.#bytes?.equals(output) === true) return this.#output
    const read =
      this.#point === 'OnToolCall'
        ? readToolOutput(output)
        : readPhaseOutput(output, this.#point === 'OnRequest')
    // Bodies are handed on and belong to one call.
    if (output !== null && output.length <= MAX_KEPT_BYTES && read.body === null && read.fetch === null) {
      this.#bytes = Buffer.from(output)
      this.#output = read
    }
    return read
  }
}
