/**
 * The event stream writer that handlers get. Events of one turn leave together in one write: handlers may run inside
 * a callback of the server library, where several writes corrupt the stream of a slow client (platform fact).
 */
import type { ReplySink } from '../contracts/reply-sink.ts'
import type { SseWriter } from '../contracts/request.ts'

/** Events of one turn beyond this, in bytes or characters, make `write` say so: the handler waits for the drain. */
const MAX_WAITING_BYTES = 65_536

/** The reply that events go to. */
export interface EventStreamReply extends Pick<ReplySink, 'setListener' | 'writeStream' | 'endStream'> {
  fail(error: unknown): void
}

export class ContextSseWriter implements SseWriter {
  readonly #reply: EventStreamReply
  #waiting: Buffer[] = []
  /** Behind what waits as bytes: text becomes bytes once for all events of a turn. */
  #text = ''
  #isScheduled = false
  #isEnded = false
  #isWritable = true
  #waitingBytes = 0
  #resume: (() => void) | null = null

  constructor(reply: EventStreamReply) {
    this.#reply = reply
  }

  write(event: string | Buffer): boolean {
    if (this.#isEnded) return this.#isWritable
    if (typeof event === 'string') this.#text += event
    else {
      this.#endText()
      this.#waiting.push(event)
    }
    this.#waitingBytes += event.length
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#isWritable = false
    this.#schedule()
    return this.#isWritable
  }

  onDrain(resume: () => void): void {
    this.#resume = resume
    this.#reply.setListener({ onClientDrain: () => this.#drained(), onCancel: () => {} })
  }

  end(lastEvent?: string | Buffer): void {
    if (lastEvent !== undefined) this.write(lastEvent)
    this.#isEnded = true
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    this.#endText()
    const bytes = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting)
    const wasWritable = this.#isWritable
    this.#waiting = []
    this.#waitingBytes = 0
    if (this.#isEnded) this.#reply.endStream(bytes)
    else if (!this.#reply.writeStream(bytes)) this.#isWritable = false
    else if (!wasWritable) this.#drained()
  }

  #endText(): void {
    if (this.#text === '') return
    this.#waiting.push(Buffer.from(this.#text))
    this.#text = ''
  }

  /** What a handler throws here has no caller who could catch it, and must not end the thread. */
  #drained(): void {
    this.#isWritable = true
    try {
      this.#resume?.()
    } catch (error) {
      this.#reply.fail(error)
    }
  }
}
