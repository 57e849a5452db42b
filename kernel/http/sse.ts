/**
 * The event stream writer that handlers get. Events of one turn leave together in one write: handlers may run inside
 * a callback of the server library, where several writes corrupt the stream of a slow client (platform fact).
 */
import type { SseWriter } from '../contracts/request.ts'
import type { HttpContext } from './context.ts'

export class ContextSseWriter implements SseWriter {
  readonly #ctx: HttpContext
  #waiting: Buffer[] = []
  #isScheduled = false
  #isEnded = false
  #isWritable = true

  constructor(ctx: HttpContext) {
    this.#ctx = ctx
  }

  write(event: string | Buffer): boolean {
    if (this.#isEnded) return this.#isWritable
    this.#waiting.push(typeof event === 'string' ? Buffer.from(event) : event)
    this.#schedule()
    return this.#isWritable
  }

  onDrain(resume: () => void): void {
    this.#ctx.setListener({
      onClientDrain: () => {
        this.#isWritable = true
        resume()
      },
      onClientAbort: () => {},
    })
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
    const bytes = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting)
    this.#waiting = []
    if (this.#isEnded) this.#ctx.endStream(bytes)
    else this.#isWritable = this.#ctx.writeStream(bytes)
  }
}
