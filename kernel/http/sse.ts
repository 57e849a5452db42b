/** The event stream writer that handlers get: thin, over the context's stream. */
import type { SseWriter } from '../contracts/request.ts'
import type { HttpContext } from './context.ts'

export class ContextSseWriter implements SseWriter {
  readonly #ctx: HttpContext

  constructor(ctx: HttpContext) {
    this.#ctx = ctx
  }

  write(event: string | Buffer): boolean {
    return this.#ctx.writeStream(event)
  }

  onDrain(resume: () => void): void {
    this.#ctx.setListener({ onClientDrain: resume, onClientAbort: () => {} })
  }

  end(lastEvent?: string | Buffer): void {
    if (lastEvent !== undefined) this.#ctx.writeStream(lastEvent)
    this.#ctx.endStream()
  }
}
