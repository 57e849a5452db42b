/**
 * The stream writer for handlers. Chunks of one turn are sent in one write, because several writes inside a callback of
 * the server library corrupt the stream of a slow client. @hot
 */
import type { RelayContext, SinkListener } from '../contracts/relay-context.ts'
import type { StreamWriter } from '../contracts/request.ts'

/** More than this in one turn makes `write` return false. */
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
type StreamTarget = Pick<RelayContext, 'setListener' | 'writeStream' | 'endStream' | 'fail' | 'flow'>

export class BatchedStreamWriter implements StreamWriter, SinkListener {
  readonly #ctx: StreamTarget
  /** Unsent data: buffers, then text. */
  #buffers: Buffer[] | null = null
  #text = ''
  #isScheduled = false
  #isEnded = false
  #isWritable = true
  #waitingBytes = 0

  constructor(ctx: StreamTarget) {
    this.#ctx = ctx
    ctx.setListener(this)
  }

  write(chunk: string | Buffer): boolean {
    if (this.#isEnded) return this.#isWritable
    if (typeof chunk === 'string') this.#text += chunk
    else this.#append(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#hold()
    this.#schedule()
    return this.#isWritable
  }

  #append(bytes: Buffer): void {
    this.#buffers ??= []
    if (this.#text !== '') this.#buffers.push(Buffer.from(this.#text))
    this.#text = ''
    this.#buffers.push(bytes)
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
    this.#waitingBytes = 0
    try {
      if (this.#isEnded) this.#ctx.endStream(chunk)
      else if (this.#ctx.writeStream(chunk)) this.onClientDrain()
      else this.#hold()
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

  #hold(): void {
    if (!this.#isWritable) return
    this.#isWritable = false
    this.#ctx.flow.hold()
  }

  onClientDrain(): void {
    if (this.#isWritable) return
    this.#isWritable = true
    try {
      this.#ctx.flow.release()
    } catch (error) {
      this.#ctx.fail(error)
    }
  }

  /** What waits for the client must end too. */
  onCancel(): void {
    this.onClientDrain()
  }
}
