/** Collects a complete worker response, for routes that transform it. */
import {
  type Call,
  type CallHandler,
  type HeaderList,
  headerOf,
  type OpenCall,
  type RelayContext,
  type RelayOptions,
  type RequestContext,
  type Upstream,
  UpstreamFailure,
  type UpstreamRequest,
  upstreamErrors,
  usageOfBody,
  type WorkerEntry,
  type WorkerResponse,
  withModel,
} from '#kernel'
import { parseBoundedJson } from '../formats/bounded-json.ts'

/** Maximum size of a collected response, in bytes. */
const MAX_COLLECTED_BYTES = 67_108_864

/** Parts of the upstream that collecting needs. */
export type CollectingUpstream = Pick<Upstream, 'open' | 'headersFor'>

/**
 * Like `Upstream.relay`, but collects the response instead of sending it.
 *
 * @throws an upstream error (502, 504) or a selection error (404, 503) after all attempts; UpstreamFailure if the client
 * disconnects or the request fails meanwhile
 */
export function collectResponse(
  upstream: CollectingUpstream,
  ctx: RequestContext,
  options: RelayOptions,
): Promise<WorkerResponse> {
  if (ctx.isAborted) return Promise.reject(requestEnded())
  return new Promise((resolve, reject) => {
    const handler = new ResponseCollector(resolve, reject)
    const run = upstream.open(new CollectedRequest(upstream, ctx as RelayContext, options), handler)
    handler.call = run
    ctx.onCancel(() => {
      run.abort()
      reject(requestEnded())
    })
  })
}

class ResponseCollector implements CallHandler {
  call: OpenCall | null = null
  readonly #resolve: (reply: WorkerResponse) => void
  readonly #reject: (error: unknown) => void
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: HeaderList = []

  constructor(resolve: (reply: WorkerResponse) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  onHead(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_COLLECTED_BYTES)
      this.call?.fail(upstreamErrors.read_response_body_failed(`it exceeds ${MAX_COLLECTED_BYTES} bytes`))
    else this.#chunks.push(Buffer.from(chunk))
  }

  onEnd(): void {
    const body = Buffer.concat(this.#chunks)
    const usage = this.#status < 400 ? usageOfBody(body) : null
    if (usage !== null) this.call?.used(usage)
    this.#resolve(toWorkerResponse(this.#status, this.#headers, body))
  }

  onFailed(error: unknown): void {
    this.#reject(error)
  }
}

/** The client's request as a call whose response is collected. */
class CollectedRequest implements Call {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts = null
  readonly promptBytes = null
  readonly #upstream: CollectingUpstream
  readonly #options: RelayOptions
  /** Read once, because the handler may finish before the worker has responded. */
  readonly #body: Buffer

  constructor(upstream: CollectingUpstream, ctx: RelayContext, options: RelayOptions) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
    this.#upstream = upstream
    this.#options = options
    this.#body = ctx.bodyBytes
  }

  requestFor(worker: WorkerEntry, model: string): UpstreamRequest {
    const { ctx } = this
    const isAlias = this.model !== null && this.model !== model
    return {
      method: this.#options.method ?? 'POST',
      path: this.#options.path,
      headers: this.#upstream.headersFor(ctx, worker, this.#options.headers),
      body: isAlias ? withModel(this.#body, ctx.peek(), model) : this.#body,
    }
  }
}

/** Failure of a call whose request has ended. */
function requestEnded(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request ended before the response', false)
}

/** Builds a reply from its parts. */
export function toWorkerResponse(status: number, headers: HeaderList, body: Buffer): WorkerResponse {
  return {
    status,
    headers,
    body,
    header: (name) => headerOf(headers, name),
    json: () => parseBoundedJson(body),
  }
}
