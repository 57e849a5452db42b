/**
 * Calls: one request on its way to one worker (or a pair of them), and its answer as bytes. A call need not have a
 * client: its context may be one that was made for work without one (`host.detached`).
 */
import type { RelayContext } from './reply-sink.ts'
import type { TokenCounts } from './request.ts'
import type { HeaderList, UpstreamFailure, UpstreamRequest } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** What is to be called, on whose behalf. */
export interface Call {
  /** Whose call it is: identity, request id, headers, hooks, limits, and where it is counted. */
  readonly ctx: RelayContext
  /** As the client named it; aliases are resolved when the call is opened. Null takes any worker. */
  readonly model: string | null
  /** A stream was asked for: a label in metrics. */
  readonly stream: boolean
  /** Exactly this worker: no policy and no hook chooses, and nobody else is tried. Null: the balance picks. */
  readonly worker: WorkerEntry | null
  /** The prompt where the gateway has tokenised it, for policies that look at prefixes. */
  readonly tokenIds: Uint32Array | null
  /** The prompt as bytes, for policies that look at those; valid until the call has ended. Null: the client's body. */
  readonly promptBytes: Buffer | null
  /** Null takes every worker of the model. */
  readonly accepts: ((worker: WorkerEntry) => boolean) | null
  /**
   * The request for one worker: path, body and credentials depend on who was picked.
   *
   * @param model canonical
   * @param attempt 1-based
   * @throws GatewayError, which ends the call
   */
  requestFor(worker: WorkerEntry, model: string, attempt: number): UpstreamRequest
}

/**
 * Hears the answer of a call: onAnswer once, onData any number of times, then onEnd or onFailed; onFailed may come
 * first. Nothing after `abort`, `fail` or `finish`. Must not throw.
 */
export interface CallHandler {
  /** The answer that counts: no other worker is tried from here on, unless `tryElsewhere` is asked for. */
  onAnswer(status: number, headers: HeaderList, contentLength: number): void
  /** The chunk's memory is reused after the call. */
  onData(chunk: Buffer): void
  /**
   * The worker has ended its answer. What the handler finds missing in it makes the call fail as if the answer had
   * broken off there; null, or no such method: it is whole, and `onEnd` follows.
   */
  faultAtEnd?(): UpstreamFailure | null
  onEnd(): void
  /** No answer comes, or it broke off. @param error mostly a GatewayError; anything else is a bug */
  onFailed(error: unknown): void
}

/** A call under way. */
export interface OpenCall {
  /** Of the answer; 0 until there is one. */
  readonly status: number
  /** The worker of the present attempt; null between attempts. */
  readonly worker: WorkerEntry | null
  pause(): void
  resume(): void
  /** Nobody wants the answer any more: the worker stops, and nothing more is heard. Safe at any time, also twice. */
  abort(): void
  /** The answer is all there as far as the caller can tell: it counts as whole, and nothing more is heard. */
  finish(): void
  /** What the answer has cost, as far as its reader knows; before `finish`. For metrics, traces and the access line. */
  used(tokens: TokenCounts): void
  /** The answer is of no use: counts as failed, and is told by `onFailed`. */
  fail(error: unknown): void
  /**
   * The answer has begun and turns out to be a failure that another worker may mend; nothing of it was passed on.
   * @returns false when no further attempt is to be made: then the caller ends it with `fail`
   */
  tryElsewhere(): boolean
}
