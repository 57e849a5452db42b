/**
 * The event stream writer that handlers get. Events of one turn leave together in one write: handlers may run inside
 * a callback of the server library, where several writes corrupt the stream of a slow client (platform fact). @hot
 */
import type { ReplySink } from '../contracts/reply-sink.ts'
import type { SseWriter } from '../contracts/request.ts'

/** Events of one turn beyond this make `write` say so: the handler waits for the drain. */
const MAX_WAITING_BYTES = 65_536

/** The reply that events go to. */
export interface EventStreamReply extends Pick<ReplySink, 'setListener'> {
  writeStream(events: Buffer | string): boolean
  endStream(last: Buffer | string): void
  fail(error: unknown): void
}

/** Writers of this thread that have something to send at the end of the turn; one callback serves them all. */
let due: ContextSseWriter[] = []

function flushAll(): void {
  const writers = due
  due = []
  let at = 0
  try {
    while (at < writers.length) writers[at++].flush()
  } finally {
    // One that throws must not keep the others from sending.
    for (; at < writers.length; at++) schedule(writers[at])
  }
}

function schedule(writer: ContextSseWriter): void {
  if (due.push(writer) === 1) setImmediate(flushAll)
}

export class ContextSseWriter implements SseWriter {
  readonly #reply: EventStreamReply
  /** What waits: text, behind whole buffers where there were some. */
  #buffers: Buffer[] | null = null
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
    else this.#hold(event)
    this.#waitingBytes += event.length
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#isWritable = false
    this.#schedule()
    return this.#isWritable
  }

  #hold(bytes: Buffer): void {
    this.#buffers ??= []
    if (this.#text !== '') this.#buffers.push(Buffer.from(this.#text))
    this.#text = ''
    this.#buffers.push(bytes)
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
    schedule(this)
  }

  /** Sends what waits. */
  flush(): void {
    this.#isScheduled = false
    const events = this.#take()
    const wasWritable = this.#isWritable
    this.#waitingBytes = 0
    if (this.#isEnded) this.#reply.endStream(events)
    else if (!this.#reply.writeStream(events)) this.#isWritable = false
    else if (!wasWritable) this.#drained()
  }

  #take(): string | Buffer {
    const text = this.#text
    const buffers = this.#buffers
    this.#text = ''
    if (buffers === null) return text
    this.#buffers = null
    if (text !== '') buffers.push(Buffer.from(text))
    return buffers.length === 1 ? buffers[0] : Buffer.concat(buffers)
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
