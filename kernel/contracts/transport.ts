/** The transport contract: sends one attempt to a worker and reports its response by callbacks. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { WorkerEntry } from './worker.ts'

/** Flat list of header names (lower-case) and values: [name, value, name, value, …]. */
export type HeaderList = string[]

/** One request to one worker. */
export interface UpstreamRequest {
  readonly method: string
  /** Path and query on the worker, beginning with a slash. */
  readonly path: string
  /** Without host, connection, content-length and transfer-encoding: the transport writes those. */
  readonly headers: HeaderList
  /** Null sends no body. */
  readonly body: Buffer | null
}

/** Why an attempt failed; decides status and whether another attempt may follow. */
export type UpstreamFailureKind =
  /** No connection within the connect limit, or it was refused. */
  | 'connect'
  /** Connected, but no response head within `headMs`, or no byte of the body within `firstTokenMs`. */
  | 'first_byte_timeout'
  /** Silence between body bytes for longer than the idle limit. */
  | 'idle_timeout'
  /** The whole exchange took longer than the request limit. */
  | 'request_timeout'
  /** The connection broke before the response was whole. */
  | 'reset'
  /** The bytes were not what the transport speaks, or a limit on them was passed. */
  | 'protocol'
  /** The worker responded with a failure for which the transport has an error. */
  | 'refused'
  /** The worker has no room for the request until others end; no fault of the worker. */
  | 'full'

/** How an exchange with a worker failed. */
export class UpstreamFailure extends Error {
  readonly kind: UpstreamFailureKind
  /** True if any byte of a response had arrived: from then on no other attempt may be made. */
  readonly responseStarted: boolean
  /**
   * The client's error, if the transport has a more precise one than the kind gives. Null otherwise.
   */
  readonly error: GatewayError | null
  constructor(
    kind: UpstreamFailureKind,
    message: string,
    responseStarted: boolean,
    options: { readonly cause?: unknown; readonly error?: GatewayError } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'UpstreamFailure'
    this.kind = kind
    this.responseStarted = responseStarted
    this.error = options.error ?? null
  }
}

/**
 * Receives one response, in this order: onResponseStart once, onResponseData any number of times, then
 * exactly one of onResponseEnd and onResponseError. After `abort()` nothing more is called.
 */
export interface UpstreamHandler {
  /**
   * @param headers names lower-case, hop-by-hop headers still in
   * @param contentLength body bytes to come, or -1 when not announced
   */
  onResponseStart(status: number, headers: HeaderList, contentLength: number): void
  /** The chunk's memory is reused after the call returns: write it on or copy it. */
  onResponseData(chunk: Buffer): void
  onResponseEnd(): void
  onResponseError(failure: UpstreamFailure): void
}

/** A running exchange. */
export interface Exchange {
  /** Stops reading; at most one more `onResponseData` may follow. Idle and first-byte limits are suspended meanwhile. */
  pause(): void
  resume(): void
  /** Aborts the exchange and closes its connection. Safe at any time, also twice. */
  abort(): void
}

/** Limits of one exchange, in milliseconds; 0 disables a limit. */
export interface UpstreamLimits {
  readonly connectMs: number
  /** From sending the request to the response head; 0 for a stream. */
  readonly headMs: number
  /** From sending the request to the first byte of the body; 0 for a whole response. */
  readonly firstTokenMs: number
  readonly idleMs: number
  readonly requestMs: number
}

/** One per connection mode, registered by a plugin. */
export interface Transport {
  readonly mode: string
  /** Never calls the handler before it has returned. A handler must not throw. */
  open(
    worker: WorkerEntry,
    request: UpstreamRequest,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ): Exchange
  /** The table changed: close idle connections to workers that left. */
  onWorkersChanged(workers: readonly WorkerEntry[]): void
  close(): void
}
