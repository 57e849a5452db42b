/** What handlers and hooks see of one request. Implemented by `http/context.ts`. */
import type { Validator } from '../schema/validate.ts'
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

/** Writes one event stream to the client. */
export interface SseWriter {
  /** One event, framing and all, such as `data: {}\n\n`. @returns false when the client is slow: wait for drain */
  write(event: string | Buffer): boolean
  /** Called each time the client has taken what was buffered. */
  onDrain(resume: () => void): void
  end(lastEvent?: string | Buffer): void
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
  /** Starts an event stream with heartbeats. */
  sse(status?: number, headers?: ReplyHeaders): SseWriter
  /** Ends with the error reply of the route's format; after the first byte of an event stream, with an error event. */
  fail(error: unknown): void
  /** Closes the client's connection at once, whatever was sent. */
  destroy(): void
  /** Called once if the client goes away before the reply is whole. */
  onAbort(listener: () => void): void
  /** Called once if the client leaves, or if the request fails by somebody else's hand, before its reply is whole. */
  onCancel(listener: () => void): void
}
