/** Events of a response as frames of an event stream, numbered. @source responses facts 3.1, 3.2 @hot */

/** Takes whole frames, in order. */
export type FrameSink = (frame: string, number: number) => void

export class Frames {
  readonly #sink: FrameSink
  #next: number

  /** @param first number of the first frame */
  constructor(sink: FrameSink, first = 0) {
    this.#sink = sink
    this.#next = first
  }

  /** Frames so far. */
  get count(): number {
    return this.#next
  }

  /** @param members JSON text of the members behind the number, without the comma in front; never empty */
  send(type: string, members: string): void {
    this.#sink(
      `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#next},${members}}\n\n`,
      this.#next++,
    )
  }
}

/** What ends a stream behind its last event. */
export const DONE = 'data: [DONE]\n\n'
