/** Reads the arguments of one call that are written in a notation of their own, piece by piece. */
import type { CallOutput } from './call-output.ts'

export interface BodyReader {
  /** `RUNNING`, `DONE` or `FAILED`, as of `JsonScanner`. */
  readonly status: number
  /** Begins with another call. */
  reset(tool: string): void
  /**
   * Starts the call once the text is certainly a call, and writes its arguments.
   * @returns the end of the decided text; the rest is passed again
   */
  feed(text: string, from: number): number
}

export type OpenBody = (out: CallOutput) => BodyReader
