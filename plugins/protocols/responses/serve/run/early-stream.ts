/** Opens the stream of a request before its response has begun, when what has to be done first takes long. */
import type { RequestContext, SseWriter } from '#kernel'

/** A comment: clients and what stands in between see that somebody is at work. */
const SIGN_OF_LIFE = ': preparing the response\n\n'

export class EarlyStream {
  readonly #ctx: RequestContext
  readonly #timer: NodeJS.Timeout
  #writer: SseWriter | null = null

  /** @param afterMs what is ready sooner has a stream, or a failure with a status, of its own */
  constructor(ctx: RequestContext, afterMs: number) {
    this.#ctx = ctx
    this.#timer = setTimeout(() => this.#open(), afterMs)
  }

  /** No sign is given any more. @returns the stream where it was opened */
  stop(): SseWriter | null {
    clearTimeout(this.#timer)
    return this.#writer
  }

  #open(): void {
    const { isDone, isAborted, isFailing } = this.#ctx
    if (isDone || isAborted || isFailing) return
    this.#writer = this.#ctx.sse()
    this.#writer.write(SIGN_OF_LIFE)
  }
}
