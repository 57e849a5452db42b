/** The request context as calls to workers see it. Implemented by `http/context.ts`. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Credentials } from './auth.ts'
import type { RouteHooks, WorkerErrorText } from './hook.ts'
import type { RequestContext, TokenUsage } from './request.ts'
import type { HeaderList } from './transport.ts'

/** Follows the response that it writes. */
export interface SinkListener {
  /** The client has taken what was buffered: go on. */
  onClientDrain(): void
  /** Stop the work: the client has disconnected, or the response was ended elsewhere. */
  onCancel(): void
}

/** Adds to a request what was copied of it for the worker, the hooks of its route, and writing of its response. */
export interface RelayContext extends RequestContext {
  /** Request headers of the allow-list, without authorization and x-request-id. */
  readonly forwardedHeaders: HeaderList
  readonly hooks: RouteHooks
  /** As checked; null for requests whose credentials are not. */
  readonly credentials: Credentials | null
  /** The body, for sending only: its memory is used again when the request is over. */
  readonly rawBody: Buffer
  /**
   * Counts memory that a request holds beside its body, such as files that it names, with the bodies.
   * @returns the error for the client if it exceeds the limits of the thread or the tenant
   */
  holdUntilEnd(bytes: number): GatewayError | null
  /** Releases the body: a long stream need not hold it once the worker responds. Later readers see it empty. */
  forgetBody(): void
  /** URL of the worker that was chosen last, for the access line; never shown to clients. */
  workerUrl: string | null
  /** Of the last failed attempt, for the access line; null without one. */
  workerError: WorkerErrorText | null
  /** The body's `model` is one that the caller's key may use, so that the models it stands for may be called. */
  readonly isModelAllowed: boolean
  model: string | null
  /** Virtual model that the client named; null for any other. */
  readonly virtualModel: string | null
  /** Sets the virtual model, and the model that the response names in `x-weir-model`. */
  showTarget(virtualModel: string, model: string): void
  usage: TokenUsage | null
  usageCorrection: Promise<void> | null
  /** Attempts at workers, over all calls. */
  attempts: number
  /** Generations begun for it so far. */
  generationCount: number

  /** Set by `openAfter`, `performance.now()`; 0: the stream waits for its worker. */
  readonly opensAtMs: number
  /** The stream was opened while its worker was silent. */
  readonly isOpenedEarly: boolean
  /** Opens the event stream as `openAfter` announced, unless a stream has started. */
  openEarly(): void

  /** One listener at a time; null removes it. */
  setListener(listener: SinkListener | null): void
  /** Sends a complete response. Header names lower-case, hop-by-hop ones already dropped. */
  sendWhole(status: number, headers: HeaderList, body: Buffer): void
  /** Begins a streamed response; the head leaves with the first chunk. */
  startStream(status: number, headers: HeaderList, isEventStream: boolean): void
  /** Copies the chunk out before it returns. @returns false when the client is slow: wait for onClientDrain */
  writeStream(chunk: Buffer | string): boolean
  /**
   * @param last written before the end
   * @param endsInError the last event is an error, after which some error formats close the connection
   */
  endStream(last?: Buffer | string, endsInError?: boolean): void
}
