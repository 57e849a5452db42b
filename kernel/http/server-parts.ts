/** What all requests of a listener share, and what follows the end of each. */
import type { ErrorEncoder } from '../contracts/error-format.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { BodyBudget, BodyPool } from './body-memory.ts'
import type { CompiledRoute } from './compiled-route.ts'
import type { Cors } from './cors.ts'
import type { Heartbeats } from './heartbeat.ts'
import type { LongBodies } from './json-body.ts'
import type { ListedRequest } from './open-requests.ts'
import type { ResponseSink } from './response-sink.ts'

/** A request as the parts of the server see it. Implemented by `context.ts`. */
export interface ServedRequest extends RelayContext, ListedRequest {
  readonly server: ServerParts
  readonly compiled: CompiledRoute
  readonly sink: ResponseSink
  errorCode: string | null
  /** An error response is being made. */
  isFailing: boolean
  /** The body is still arriving. */
  isReceiving: boolean
  /** Body bytes so far. */
  bytesIn: number
  /** Encodes the error that ends a started stream; null: according to its content type. */
  readonly encodeError: ErrorEncoder | null
  /** No further hook sees the response: a hook made it, or failed on it. */
  bypassResponseHooks(): void
  /** Fails the request after a response hook failed or has delayed an error. */
  failHooked(error: unknown): void
  /** The stream can take more data. */
  resumeWriter(): void
  /** Releases the memory of the body once no worker reads it. */
  recycleBody(): void
}

/** Implemented by `server.ts`. */
export interface ServerParts {
  readonly bodies: BodyPool
  readonly bodyBudget: BodyBudget
  readonly longBodies: LongBodies
  /** Deepest nesting of a JSON body. */
  readonly maxJsonDepth: number
  readonly heartbeats: Heartbeats
  readonly cors: Cors
  readonly log: Logger
  /** Writes the access line; null when access lines are off. */
  readonly access: ((request: ServedRequest, durationMs: number) => void) | null
  /** Every response closes its connection: `kernel.http.keepAlive` is false, or the listener drains. */
  readonly closesConnections: boolean
  /** Address of the client. @param peer address of the connection */
  addressOf(peer: string, headers: HeaderList): string
  /** Counts the request as open. */
  requestBegan(request: ServedRequest): void
  requestEnded(request: ServedRequest): void
}

/** Ends a request: observers, metrics and the access line, once each. */
export function finishRequest(ctx: ServedRequest): void {
  const { server, compiled, hooks } = ctx
  server.requestEnded(ctx)
  const { onDone } = hooks
  if (onDone !== null) {
    const onThrow = (error: unknown) =>
      server.log.error({ err: error, request_id: ctx.requestId }, 'onDone hook failed')
    try {
      const pending = onDone(ctx)
      if (pending instanceof Promise) pending.catch(onThrow)
    } catch (error) {
      onThrow(error)
    }
  }
  ctx.recycleBody()
  if (compiled.metrics === null && server.access === null) return
  const durationMs = performance.now() - ctx.startedAtMs
  compiled.metrics?.onDone(ctx.status, ctx.errorCode, durationMs / 1000)
  server.access?.(ctx, durationMs)
}
