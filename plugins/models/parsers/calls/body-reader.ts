/** Reads the arguments of one call that are written in a notation of their own, piece by piece. */
import type { CallOutput } from './call-output.ts'

export interface BodyReader {
  /** `RUNNING`, `DONE` or `FAILED`, as of `JsonScanner`. */
  readonly status: number
  /** Begins with another call. */
  reset(tool: string): void
  /**
   * Starts the call once its text is certain to be one, and writes its arguments.
   * @returns the end of the text that is decided; the rest is fed again
   */
  feed(text: string, from: number): number
}

export type OpenBody = (out: CallOutput) => BodyReader
