/**
 * What a protocol knows of the responses that are relayed for its routes: whether they are complete, what they cost, and what
 * clients cannot read. The kernel knows no format.
 */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { RoutingPeek, TokenUsage } from './request.ts'
import type { RequestFacts } from './request-facts.ts'

/** How a stream ended: with the last event of its format, with an error event of the worker, or before either. */
export type StreamEnd = 'complete' | 'error' | 'cut'

/** What was observed of a response, up to its end or to where it broke off. */
export interface ObservedEnd {
  /** `cut` for a stream without the last event of its format: its client gets an error. */
  readonly end: StreamEnd
  /** Bytes that were held back, for the client of a stream that was not cut. */
  readonly rest: Buffer
  /** What the worker has reported; null for none. */
  readonly usage: TokenUsage | null
  /** The worker has reported the output; otherwise it is estimated. */
  readonly hasOutputUsage: boolean
  /** Events with output, of which engines send about one for each token. */
  readonly outputEvents: number
  /** Bytes of the stream that were passed on unread, for the estimate. */
  readonly unreadBytes: number
}

/** Observes one response that is passed on in parts: an event stream, or a body that is not collected. */
export interface ResponseObserver {
  /**
   * @param bytes valid during the call; may be changed
   * @returns the bytes for the client, as a view that is read before the next call; empty for none. @hot
   */
  chunk(bytes: Buffer): Buffer
  /** Called once: the worker has ended the response, it broke off, or the client has left. */
  end(): ObservedEnd
}

/** A response that begins. */
export interface ObservedResponse {
  readonly request: RequestFacts
  readonly isEventStream: boolean
  /** The worker was asked for usage that the client did not ask for. */
  readonly removesUsage: boolean
}

/** Replaces the bytes of a body from `start` to `end`. */
export interface BodyEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The format of a route's responses. */
export interface ResponseFormat {
  /** False for formats in which nothing is generated, such as embeddings: their output is not estimated. Default true. */
  readonly hasOutput?: boolean
  observe(response: ObservedResponse): ResponseObserver
  /** Usage of the whole body of a success; null if it has none. */
  usageOf(body: Buffer): TokenUsage | null
  /** The error that the client gets in place of the whole body of a success; null for none. Default: none. */
  errorOf?(body: Buffer): GatewayError | null
  /** The edit of a stream request that asks the worker for usage; null if it asks already. Default: workers report unasked. */
  askForUsage?(body: Buffer, peek: RoutingPeek): BodyEdit | null
  /** The generated text in the first bytes of an event stream, for a tokenizer. Default: its tokens are not counted. */
  textOf?(events: Buffer): string
}
