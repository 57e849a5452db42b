/** Events of a response as frames of an event stream, numbered. */

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

  /** Many frames of one type: all but number and value was made before. */
  sendDelta({ head, middle, tail }: DeltaFrame, value: string): void {
    const number = this.#next++
    this.#sink(head + number + middle + value + tail, number)
  }
}

/** Behind the members. */
const END = '}\n\n'

/** What frames of one type about one item have in common, around the number and the value. */
export interface DeltaFrame {
  readonly head: string
  readonly middle: string
  readonly tail: string
}

/** By type: the same text for every item of every response. */
const heads = new Map<string, string>()

/**
 * @param type one of the few that the gateway knows
 * @param before JSON text of the members between the number and the value's
 * @param name of the member that the value is
 * @param after JSON text behind the value, with its comma; may be empty
 */
export function deltaFrame(type: string, before: string, name: string, after = ''): DeltaFrame {
  let head = heads.get(type)
  if (head === undefined) {
    head = `event: ${type}\ndata: {"type":"${type}","sequence_number":`
    heads.set(type, head)
  }
  return {
    head,
    middle: `,${before},"${name}":`,
    tail: after === '' ? END : `${after}${END}`,
  }
}

/** What ends a stream behind its last event. */
export const DONE = 'data: [DONE]\n\n'
