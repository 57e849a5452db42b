/**
 * The stream writer for handlers. Chunks of one turn are sent in one write, because several writes inside a callback of
 * the server library corrupt the stream of a slow client. @hot
 */
import type { RelayContext } from '../contracts/relay-context.ts'
import type { StreamWriter } from '../contracts/request.ts'

/** More than this in one turn makes `write` return false: the handler waits for the drain. */
const MAX_WAITING_BYTES = 65_536

/** Writers of this thread with data to send at the end of the turn; one callback flushes them all. */
let due: BatchedStreamWriter[] = []

function flushAll(): void {
  const writers = due
  due = []
  for (let at = 0; at < writers.length; at++) writers[at].flush()
}

function schedule(writer: BatchedStreamWriter): void {
  if (due.push(writer) === 1) setImmediate(flushAll)
}

/** Parts of a request that a stream writer uses. */
type StreamTarget = Pick<RelayContext, 'setListener' | 'writeStream' | 'endStream' | 'fail'>

export class BatchedStreamWriter implements StreamWriter {
  readonly #ctx: StreamTarget
  /** Unsent data: buffers, then text. */
  #buffers: Buffer[] | null = null
  #text = ''
  #isScheduled = false
  #isEnded = false
  #isWritable = true
  #waitingBytes = 0
  #resume: (() => void) | null = null

  constructor(ctx: StreamTarget) {
    this.#ctx = ctx
  }

  write(chunk: string | Buffer): boolean {
    if (this.#isEnded) return this.#isWritable
    if (typeof chunk === 'string') this.#text += chunk
    else this.#hold(chunk)
    this.#waitingBytes += chunk.length
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
    this.#ctx.setListener({ onClientDrain: () => this.#drained(), onCancel: () => {} })
  }

  end(last?: string | Buffer): void {
    if (last !== undefined) this.write(last)
    this.#isEnded = true
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    schedule(this)
  }

  /** Sends what was written in this turn. An exception fails the request, because no caller could catch it. */
  flush(): void {
    this.#isScheduled = false
    const chunk = this.#take()
    const wasWritable = this.#isWritable
    this.#waitingBytes = 0
    try {
      if (this.#isEnded) this.#ctx.endStream(chunk)
      else if (!this.#ctx.writeStream(chunk)) this.#isWritable = false
      else if (!wasWritable) this.#drained()
    } catch (error) {
      this.#ctx.fail(error)
    }
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

  /** Catches exceptions of a handler, which would end the thread. */
  #drained(): void {
    this.#isWritable = true
    try {
      this.#resume?.()
    } catch (error) {
      this.#ctx.fail(error)
    }
  }
}
