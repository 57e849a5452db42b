/** What handlers and hooks see of one request. Implemented by `http/context.ts`. */
import type { Validator } from '../schema/validate.ts'
import type { ErrorEncoder } from './error-format.ts'
import type { RequestFacts } from './request-facts.ts'
import type { RouteFacts } from './route-facts.ts'
import type { HeaderList } from './transport.ts'

/** Extra reply headers: [name, value, …], names lower-case. */
export type ReplyHeaders = readonly string[]

/** A whole answer, as `onRequest` hooks may give one. */
export interface Reply {
  readonly status: number
  readonly headers?: ReplyHeaders
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
}

/** Tokens of generations that were read here; an answer that passes through as bytes is not looked into. */
export interface TokenCounts {
  readonly input: number
  readonly output: number
}

/** Writes one streamed response to the client. Chunks written in one turn of the event loop are sent together. */
export interface StreamWriter {
  /**
   * Writes a chunk, framing included: an event such as `data: {}\n\n`, or a line of NDJSON with its line feed.
   * @returns false when the client is slow: wait for drain
   */
  write(chunk: string | Buffer): boolean
  /** Called each time the client has taken what was buffered. */
  onDrain(resume: () => void): void
  /** @param last written before the end */
  end(last?: string | Buffer): void
}

/** A stream of server-sent events. */
export type SseWriter = StreamWriter

export interface StreamOptions {
  /**
   * Encodes the error that ends the stream, once the first byte was sent. Default: the error events of the route's
   * format in an event stream; any other stream is cut, so that clients do not take it for complete.
   */
  readonly encodeError?: ErrorEncoder
}

export interface RequestContext extends RequestFacts {
  readonly route: RouteFacts
  /** Status sent to the client; 0 until then. */
  readonly status: number
  /** Reply body bytes handed to the client's socket so far. */
  readonly bytesOut: number
  /** `performance.now()` at the first reply byte; 0 until then. */
  readonly firstByteAtMs: number
  /** The client went away before the reply was whole. */
  readonly isAborted: boolean
  /** The reply is whole or given up. */
  readonly isDone: boolean
  /** An error reply is being made: whoever works on another reply may stop. */
  readonly isFailing: boolean
  /** Code of the error reply, for logs and metrics; null when there was none. */
  readonly errorCode: string | null

  /** Names of middleware modules that had a part in the request, each once; null while there are none. For logs. */
  readonly modules: readonly string[] | null
  /** Adds a name to `modules`. */
  noteModule(name: string): void

  /** Canonical, of the call to a worker that was made last; null before the first. */
  readonly model: string | null
  /** Over all its generations so far; null while none has told. */
  readonly tokens: TokenCounts | null

  /** Path parameter by name, percent-decoded; empty when the route has none of that name. */
  param(name: string): string
  queryParam(name: string): string | null
  /**
   * Such as `10.0.0.7`: the connection's other end, or whom a trusted proxy there names; empty once the request is done.
   */
  readonly clientAddress: string
  /** A declared request header, name in lower case. */
  header(name: string): string | undefined
  /** Headers as received, [name, value, …], repeated names repeated; complete only where a hook `readsAllHeaders`. */
  readonly requestHeaders: HeaderList
  /**
   * Changes a request header for what comes after: `set` replaces every value of the name, `add` appends one, `remove`
   * drops all (value ignored). What a hook sets or adds reaches the worker, whatever the allow-list says; framing
   * headers cannot be changed.
   * @throws TypeError for a name or a value that no header line can hold
   */
  changeHeader(change: 'set' | 'add' | 'remove', name: string, value: string): void
  /** Request body as received; empty when there is none. */
  readonly bodyBytes: Buffer
  /** Replaces the body for what comes after; used by hooks. */
  setBody(bytes: Buffer): void
  /**
   * Parses and validates the body, once.
   * @throws json_parse_error (400, with position) or invalid_field (400, naming the field)
   */
  body<T>(validator: Validator<T>): T
  /** The parsed body, unchecked: for handlers that leave the check to another thread. @throws json_parse_error (400) */
  bodyJson(): unknown
  /** @throws json_parse_error (400) when the bytes are not one JSON object, invalid_field for a wrong model or stream */
  peek(): RoutingPeek

  json(status: number, value: unknown, headers?: ReplyHeaders): void
  text(status: number, body: string, headers?: ReplyHeaders): void
  /** Whole reply with a content type of its own. */
  send(status: number, contentType: string | null, body: string | Buffer, headers?: ReplyHeaders): void
  /**
   * Starts a streamed response of any content type; the head leaves with the first chunk.
   * @param headers with the content type; `text/event-stream` makes it what `sse` starts
   * @example ctx.stream(200, ['content-type', 'application/x-ndjson']).write('{"done":1}\n')
   */
  stream(status: number, headers: ReplyHeaders, options?: StreamOptions): StreamWriter
  /** Starts an event stream: `stream` with its content type, and a comment line as heartbeat when nothing is written. */
  sse(status?: number, headers?: ReplyHeaders): StreamWriter
  /** Ends with the error response of the route's format; after the first byte of a stream, as its `encodeError` says. */
  fail(error: unknown): void
  /** Closes the client's connection at once, whatever was sent. */
  destroy(): void
  /** Called once if the client goes away before the reply is whole. */
  onAbort(listener: () => void): void
  /** Called once if the client leaves, or if the request fails by somebody else's hand, before its reply is whole. */
  onCancel(listener: () => void): void
}
