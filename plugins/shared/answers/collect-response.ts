/** Collects a complete worker response, for routes that transform it. */
import {
  type Call,
  collectCall,
  editBody,
  type HeaderList,
  headerOf,
  parseBoundedJson,
  type RelayContext,
  type RelayOptions,
  type RequestContext,
  type Upstream,
  type UpstreamRequest,
  type WorkerEntry,
  type WorkerResponse,
  withModel,
} from '#kernel'

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
export async function collectResponse(
  upstream: CollectingUpstream,
  ctx: RequestContext,
  options: RelayOptions,
): Promise<WorkerResponse> {
  const edited = editBody(ctx as RelayContext)
  if (edited !== null) {
    // The handler may finish meanwhile, and the memory of the body must not be used again then.
    void ctx.bodyBytes
    await edited
  }
  const call = new CollectedRequest(upstream, ctx as RelayContext, options)
  const { status, headers, body } = await collectCall(upstream, call, MAX_COLLECTED_BYTES)
  return toWorkerResponse(status, headers, body)
}

/** The client's request as a call whose response is collected. */
class CollectedRequest implements Call {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts: Call['accepts']
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
    this.accepts = options.accepts ?? null
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

/** Builds a response from its parts. */
export function toWorkerResponse(status: number, headers: HeaderList, body: Buffer): WorkerResponse {
  return {
    status,
    headers,
    body,
    header: (name) => headerOf(headers, name),
    json: () => parseBoundedJson(body),
  }
}

/** Whether a status is 2xx. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** Statuses of engines without the route, or without the method. */
export const NO_SUCH_ROUTE: ReadonlySet<number> = new Set([404, 405, 501])
