/** One request as handlers and hooks see it. Implemented by `http/context.ts`. */
import type { Validator } from '../schema/validate.ts'
import type { ErrorEncoder } from './error-format.ts'
import type { RequestFacts } from './request-facts.ts'
import type { RouteFacts } from './route.ts'
import type { HeaderList } from './transport.ts'

/** Extra response headers: [name, value, …], names lower-case. */
export type ExtraHeaders = readonly string[]

/** Response header of warnings. */
export const WARNING_HEADER = 'x-weir-warning'

/** A complete response, as `onRequest` and `onError` hooks may return one. */
export interface WholeResponse {
  readonly status: number
  readonly headers?: ExtraHeaders
  readonly contentType?: string
  readonly body?: string | Buffer
}

/** Position of the values that routing needs, found on the bytes without parsing the body. */
export interface RoutingPeek {
  /** Top-level `model` when it is a string; null when absent or null. */
  readonly model: string | null
  /** Top-level `stream`; false when absent or null. */
  readonly stream: boolean
  /** Byte range of the model's JSON value, quotes included; both -1 when there is none. */
  readonly modelStart: number
  readonly modelEnd: number
  /** Position of the value of the top-level `stream_options`; -1 if there is none. */
  readonly streamOptionsStart: number
}

/** Tokens of the responses of a request, as workers report them. */
export interface TokenUsage {
  /** Of the prompt, those from a cache included. */
  readonly input: number
  /** Of the answer, reasoning included. */
  readonly output: number
  /** Of the input: read from a cache. */
  readonly cached: number
  /** Of the output. */
  readonly reasoning: number
  /** The worker did not report it, and it is not counted by a tokenizer (yet). Default false. */
  readonly isEstimated?: boolean
  readonly breakdown?: UsageBreakdown
}

/** What prices may depend on beside input, cached input and output. */
export interface UsageBreakdown {
  /**
   * Tokens by kind: `cache_write` is input that was written to a cache, `cache_write_1h` the part of it with that time to
   * live; `input_audio`, `output_image` and so on are parts of input and output.
   */
  readonly kinds: Readonly<Record<string, number>>
  /** Service tier of the response, such as `priority`; null if the worker reports none. */
  readonly tier: string | null
}

/** Writes one streamed response to the client. Chunks written in one turn of the event loop are sent together. */
export interface StreamWriter {
  /**
   * Writes a chunk, framing included: an event such as `data: {}\n\n`, or a line of NDJSON with its line feed.
   * @returns false when the client is slow: wait for `RequestContext.flow`
   */
  write(chunk: string | Buffer): boolean
  /** @param last written before the end */
  end(last?: string | Buffer): void
}

/**
 * Back-pressure of one streamed response. Parts that cannot take more hold it, as the writer does for a slow client; sources
 * check it after each event. Streamed generations do so without help of their front.
 */
export interface FlowControl {
  readonly isHeld: boolean
  /** Each call needs one of `release`. */
  hold(): void
  release(): void
  /** @param resume called once when nothing holds the response any more, or when it has ended; only while it is held */
  whenReleased(resume: () => void): void
}

/** Settings of a streamed response. */
export interface StreamOptions {
  /**
   * Encodes the error that ends the stream, once the first byte was sent. Default: the error events of the route's
   * format in an event stream; any other stream is cut, so that clients do not take it for complete.
   */
  readonly encodeError?: ErrorEncoder
}

/** One request, and the response to it. Valid on the thread that received it. */
export interface RequestContext extends RequestFacts {
  readonly route: RouteFacts
  /** As `DetachedWork.isContinuation`; false for the requests of clients. */
  readonly isContinuation: boolean
  /** Status sent to the client; 0 until then. */
  readonly status: number
  /** Response body bytes written so far. */
  readonly bytesOut: number
  /** `performance.now()` at the first response byte; 0 until then. */
  readonly firstByteAtMs: number
  /** The client disconnected before the response was complete. */
  readonly isAborted: boolean
  /** The response is complete or given up. */
  readonly isDone: boolean
  /** An error response is being made: work on another response may stop. */
  readonly isFailing: boolean
  /** Code of the error response, for logs and metrics; null when there was none. */
  readonly errorCode: string | null

  /** Names of the middleware modules that ran for the request, each once; null while there are none. For logs. */
  readonly modules: readonly string[] | null
  noteModule(name: string): void

  /** Canonical model name of the last call to a worker; null before the first. */
  readonly model: string | null
  /** Sum over its calls to workers so far; null while no worker has reported any. */
  readonly usage: TokenUsage | null
  /** Settles when a tokenizer has replaced the estimates in `usage`, which may be after the request; null without any. */
  readonly usageCorrection: Promise<void> | null

  /** Path parameter by name, percent-decoded; empty when the route has none of that name. */
  param(name: string): string
  queryParam(name: string): string | null
  /**
   * Such as `10.0.0.7`: the connection's other end, or the client named by a trusted proxy; empty once the request is done.
   */
  readonly clientAddress: string
  /** A declared request header, name in lower case. */
  header(name: string): string | undefined
  /** Headers as received, [name, value, …], repeated names repeated; complete only where a hook `readsAllHeaders`. */
  readonly requestHeaders: HeaderList
  /**
   * Changes a request header for later hooks, the handler and the worker: `set` replaces every value of the name, `add` appends one, `remove`
   * drops all (value ignored). What a hook sets or adds is sent to the worker, also outside the allow-list; framing headers
   * cannot be changed.
   * @throws TypeError for a name or a value that is not valid in a header line
   */
  changeHeader(change: 'set' | 'add' | 'remove', name: string, value: string): void
  /** Request body as received; empty when there is none. */
  readonly bodyBytes: Buffer
  /** Replaces the body for later hooks, the handler and the worker. */
  setBody(bytes: Buffer): void
  /**
   * Parses and validates the body, once.
   * @throws json_parse_error (400, with position) or invalid_field (400, naming the field)
   */
  body<T>(validator: Validator<T>): T
  /** The parsed body, not validated: for handlers that validate on another thread. @throws json_parse_error (400) */
  bodyJson(): unknown
  /** @throws json_parse_error (400) when the bytes are not one JSON object, invalid_field for a wrong model or stream */
  peek(): RoutingPeek

  /**
   * Adds a warning to the response: to its header `x-weir-warning`, or as a comment at the end of an event stream that has
   * begun.
   * @param warning a field value
   */
  warn(warning: string): void
  /** Removes and returns the warnings so far, for responses whose clients see neither headers nor comments. */
  takeWarnings(): readonly string[]
  /**
   * Opens the event stream of the response with a comment if no worker has sent a byte that long after the arrival of the
   * request (checked each second), since clients give up on a silent server. `sse` and a relay then continue the stream, and
   * failures have no HTTP status. Until then no retry of the gateway waits longer than what is left.
   * @param headers of the stream
   */
  openAfter(ms: number, headers?: ExtraHeaders): void
  json(status: number, value: unknown, headers?: ExtraHeaders): void
  text(status: number, body: string, headers?: ExtraHeaders): void
  /**
   * Sends a complete response.
   * @param contentType null when the headers have it, or there is none
   * @throws TypeError for a header with invalid characters; nothing was sent then
   */
  send(status: number, contentType: string | null, body: string | Buffer, headers?: ExtraHeaders): void
  /**
   * Starts a streamed response of any content type; the head leaves with the first chunk.
   * @param headers with the content type; `text/event-stream` makes it what `sse` starts
   * @example ctx.stream(200, ['content-type', 'application/x-ndjson']).write('{"done":1}\n')
   */
  stream(status: number, headers: ExtraHeaders, options?: StreamOptions): StreamWriter
  /**
   * Starts an event stream: `stream` with its content type, and a comment line as heartbeat when nothing is written.
   * @throws TypeError if the headers have a content type; use `stream`
   */
  sse(status?: number, headers?: ExtraHeaders): StreamWriter
  readonly flow: FlowControl
  /** Ends with the error response of the route's format; after the first byte of a stream, as its `encodeError` says. */
  fail(error: unknown): void
  /** Closes the client's connection at once, whatever was sent. */
  destroy(): void
  /** Called once if the client disconnects before the response is complete. */
  onAbort(listener: () => void): void
  /** Called once if the client disconnects, or the request fails elsewhere, before the response is complete. */
  onCancel(listener: () => void): void
}

/** A declared route: its properties and its handler. */
export interface RouteDefinition extends RouteFacts {
  /** May return a promise or keep the context; what it throws becomes the error response. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
}
