/** Collects one whole answer for routes that rebuild it; the way to it is the relay's. */
import type { RelayContext } from '../contracts/reply-sink.ts'
import { type HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import { Dispatch } from './dispatch.ts'
import type { DispatchParts } from './dispatch-parts.ts'
import type { RelayOptions, WorkerReply } from './upstream.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { toWorkerReply } from './worker-reply.ts'

/** Longer answers of a route that rebuilds them are refused. */
const MAX_COLLECTED_BYTES = 67_108_864

export class Collector extends Dispatch {
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #headers: HeaderList = []
  #resolve: (reply: WorkerReply) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  /**
   * @throws what no attempt could mend; UpstreamFailure when the client leaves or the request is failed meanwhile, so that
   * the handler comes to its end
   */
  static run(
    ctx: RelayContext,
    options: RelayOptions,
    model: string,
    parts: DispatchParts,
  ): Promise<WorkerReply> {
    if (ctx.isAborted) return Promise.reject(notWanted())
    const collector = new Collector(ctx, options, model, parts)
    return new Promise((resolve, reject) => {
      collector.#resolve = resolve
      collector.#reject = reject
      ctx.onCancel(() => {
        collector.cancel()
        reject(notWanted())
      })
      if (!collector.isOver) collector.begin()
    })
  }

  /** The handler may answer before the worker has, so the body's memory must not be used again by then. */
  protected override body(): Buffer {
    return this.ctx.bodyBytes
  }

  protected override answerStarted(headers: HeaderList): void {
    this.#headers = headers
  }

  protected override answerData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_COLLECTED_BYTES)
      this.giveUp(upstreamErrors.read_response_body_failed('it is too long'))
    else this.#chunks.push(Buffer.from(chunk))
  }

  protected override answerEnded(): void {
    this.finish()
    this.#resolve(toWorkerReply(this.status, this.#headers, Buffer.concat(this.#chunks)))
  }

  protected override failed(error: unknown): void {
    this.#reject(error)
  }

  protected override over(): void {}
}

/** The failure of an answer that nobody waits for any more; its reply goes nowhere. */
function notWanted(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request was over before the answer', false)
}
