/**
 * Calls: a request to one worker or a pair of workers, and its response as bytes. A call needs no client: its context may be
 * one of detached work (`host.detached`).
 */
import type { ModelParameters } from './model-targets.ts'
import type { RelayContext } from './relay-context.ts'
import type { TokenUsage } from './request.ts'
import type { Exchange, HeaderList, UpstreamFailure, UpstreamRequest } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** A request to a worker that is still to be picked. */
export interface Call {
  /** Request of the call: identity, request id, headers, hooks and counters. */
  readonly ctx: RelayContext
  /** Model that the client sent; aliases and virtual models are resolved when the call is opened. Null accepts any worker. */
  readonly model: string | null
  /** True if a stream was requested; a label of metrics. */
  readonly stream: boolean
  /** Set if the response is passed on as it is: any other than a stream is a failure of the worker. Default false. */
  readonly needsStream?: boolean
  /** Set if the picked worker may lack the route: its 404 is for the handler, and no other worker is tried. Default false. */
  readonly mayLackRoute?: boolean
  /**
   * True while the handler has had the head of a stream and no data: if the worker fails now, another one may continue the
   * stream, whose head the handler does not get. Default false.
   */
  readonly keepsHead?: boolean
  /**
   * Set if the response is not that of the request: neither the request's model and worker nor the response's headers show
   * the call, and its model is the plugin's choice, which restrictions of the caller's key do not concern. Default false.
   */
  readonly isAside?: boolean
  /** The only worker to use: no policy, no hook and no retry. Null: the balance picks. */
  readonly worker: WorkerEntry | null
  /** The tokenized prompt, for policies that compare prefixes; null if the gateway has not tokenized it. */
  readonly tokenIds: Uint32Array | null
  /** The prompt as bytes, for policies that compare prefixes; valid until the call has ended. Null: the client's body. */
  readonly promptBytes: Buffer | null
  /** Filters the workers of the model; null accepts all. */
  readonly accepts: ((worker: WorkerEntry) => boolean) | null
  /**
   * Builds the request for the picked worker.
   *
   * @param model canonical
   * @param attempt 1-based
   * @param parameters of the target of a virtual model; null for none
   * @throws GatewayError, which ends the call
   */
  requestFor(
    worker: WorkerEntry,
    model: string,
    attempt: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest
  /**
   * Called before the first worker of each target of a virtual model is picked.
   *
   * @param model canonical
   * @param parameters of the target; null for none
   * @returns null if the call is ready for it
   */
  prepareFor?(model: string, parameters: ModelParameters | null): Promise<void> | null
}

/**
 * Receives the response of a call: onHead once, onData any number of times, then onEnd or onFailed; onFailed may come
 * first. Not called after `abort`, `fail` or `finish`. Must not throw.
 */
export interface CallHandler {
  /** Head of the response that is passed on: no other worker is tried from here on, except by `tryElsewhere`. */
  onHead(status: number, headers: HeaderList, contentLength: number): void
  /** The chunk's memory is reused after the call. */
  onData(chunk: Buffer): void
  /**
   * Called when the worker has ended its response in order. A failure makes the call fail as if the connection had broken;
   * null, or no such method: the response is complete, and `onEnd` follows.
   */
  faultAtEnd?(): UpstreamFailure | null
  /** True if the last event of the worker's stream is an error: a connection that breaks behind it is the end. */
  hasSentError?(): boolean
  onEnd(): void
  /** The call failed, before or during the response. @param error a GatewayError, unless there is a bug */
  onFailed(error: unknown): void
}

/** A running call. */
export interface OpenCall extends Pick<Exchange, 'pause' | 'resume'> {
  /** Status of the response; 0 before it. */
  readonly status: number
  /** Worker of the current attempt; null between attempts. */
  readonly worker: WorkerEntry | null
  /** Aborts the call; the handler is not called again. Safe at any time, also twice. */
  abort(): void
  /** Ends the call as successful, if the caller knows that the response is complete; the handler is not called again. */
  finish(): void
  /** Adds the token usage of the response, for metrics, traces and the access log; before `finish`. */
  used(usage: TokenUsage): void
  /**
   * Adds usage that the worker has not reported.
   *
   * @param exact replaces the estimate, also after the request has ended; must not reject
   */
  estimated(estimate: TokenUsage, exact: Promise<TokenUsage>): void
  /** Ends the call as failed; calls `onFailed`. */
  fail(error: unknown): void
  /**
   * Retries on another worker after the response turned out to be a failure, before any of it was passed on.
   * @returns false if no further attempt is allowed; then the caller ends the call with `fail`
   */
  tryElsewhere(): boolean
}
