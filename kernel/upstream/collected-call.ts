/** Collects the whole response of a call, for callers that read it in place of passing it on. */
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import { type HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { Upstream } from '../contracts/upstream.ts'
import { usageOfBody } from './token-usage.ts'
import { upstreamErrors } from './upstream-errors.ts'

export interface CollectedResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/**
 * Opens a call and collects its response, whose token usage is counted. The call is aborted when its request ends.
 *
 * @param maxBytes longer bodies fail the call
 * @throws an upstream error (502, 504) or a selection error (404, 503) after all attempts; UpstreamFailure if the request
 *   of the call has ended or ends meanwhile, because its client disconnected or it failed
 */
export function collectCall(
  upstream: Pick<Upstream, 'open'>,
  call: Call,
  maxBytes: number,
): Promise<CollectedResponse> {
  const { ctx } = call
  if (ctx.isAborted || ctx.isFailing) return Promise.reject(requestEnded())
  return new Promise((resolve, reject) => {
    const handler = new ResponseCollector(maxBytes, resolve, reject)
    const run = upstream.open(call, handler)
    handler.call = run
    ctx.onCancel(() => {
      run.abort()
      reject(requestEnded())
    })
  })
}

class ResponseCollector implements CallHandler {
  call: OpenCall | null = null
  readonly #maxBytes: number
  readonly #resolve: (response: CollectedResponse) => void
  readonly #reject: (error: unknown) => void
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: HeaderList = []

  constructor(
    maxBytes: number,
    resolve: (response: CollectedResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#maxBytes = maxBytes
    this.#resolve = resolve
    this.#reject = reject
  }

  onHead(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#maxBytes)
      this.call?.fail(upstreamErrors.read_response_body_failed(`it exceeds ${this.#maxBytes} bytes`))
    else this.#chunks.push(Buffer.from(chunk))
  }

  onEnd(): void {
    const body = Buffer.concat(this.#chunks)
    const usage = this.#status < 400 ? usageOfBody(body) : null
    if (usage !== null) this.call?.used(usage)
    this.#resolve({ status: this.#status, headers: this.#headers, body })
  }

  onFailed(error: unknown): void {
    this.#reject(error)
  }
}

/** Failure of a call whose request has ended. */
function requestEnded(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request ended before the response', false)
}
