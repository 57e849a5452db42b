/** Where an answer is written: the upper layer that `upstream` calls through this contract. Implemented by `http/context.ts`. */
import type { RouteHooks } from './hook.ts'
import type { RequestContext, TokenCounts } from './request.ts'
import type { HeaderList } from './transport.ts'

/** Who writes the reply that is under way. */
export interface SinkListener {
  /** The client has taken what was buffered: go on. */
  onClientDrain(): void
  /** Stop the work: the client is gone, or somebody else has ended the reply. */
  onCancel(): void
}

export interface ReplySink {
  /** One listener at a time; null removes it. */
  setListener(listener: SinkListener | null): void
  /** The whole reply at once. Header names lower-case, hop-by-hop ones already dropped. */
  sendWhole(status: number, headers: HeaderList, body: Buffer): void
  /** Begins a streamed reply; the head leaves with the first chunk. */
  startStream(status: number, headers: HeaderList, isEventStream: boolean): void
  /** Copies the chunk out before it returns. @returns false when the client is slow: wait for onClientDrain */
  writeStream(chunk: Buffer): boolean
  /** @param last written before the end */
  endStream(last?: Buffer): void
}

/** A request as the relay needs it: what was copied for the worker, the route's hooks, and the way back. */
export interface RelayContext extends RequestContext, ReplySink {
  /** Request headers of the allow-list, without authorization and x-request-id. */
  readonly forwardedHeaders: HeaderList
  readonly hooks: RouteHooks
  /** The body, for sending only: its memory is used again when the request is over. */
  readonly rawBody: Buffer
  /** The worker answers: a long stream need not hold the body. Later readers see it empty. */
  forgetBody(): void
  /** URL of the worker that was chosen last, for the access line; never shown to clients. */
  workerUrl: string | null
  model: string | null
  tokens: TokenCounts | null
  /** Attempts at workers, over all calls. */
  attempts: number
  /** Generations begun for it so far. */
  generationCount: number
}
