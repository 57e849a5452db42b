/** What all requests of a listener share, the open ones, and what follows the end of each. @hot */
import type { SessionService } from '../contracts/auth.ts'
import type { ErrorEncoder } from '../contracts/error-format.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { turnNowMs } from '../observe/timing.ts'
import type { BodyBudget, BodyPool } from './body-memory.ts'
import type { CompiledRoute } from './compiled-route.ts'
import type { Cors } from './cors.ts'
import type { Heartbeats } from './heartbeat.ts'
import type { LongBodies } from './json-body.ts'
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
  readonly maxJsonDepth: number
  readonly heartbeats: Heartbeats
  readonly cors: Cors
  /** Null if no plugin provides sessions. */
  readonly sessions: SessionService | null
  readonly log: Logger
  /** Writes the access line; null when access lines are off. */
  readonly access: ((request: ServedRequest, durationMs: number) => void) | null
  /** Every response closes its connection: `kernel.http.keepAlive` is false, or the listener drains. */
  readonly closesConnections: boolean
  /** Address of the client. @param peer address of the connection */
  addressOf(peer: string, headers: HeaderList): string
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
  const durationMs = turnNowMs() - ctx.startedAtMs
  compiled.metrics?.onDone(ctx.status, ctx.errorCode, durationMs / 1000)
  server.access?.(ctx, durationMs)
}

/** A request that holds its index in the list. */
interface ListedRequest {
  /** Set by the list; -1 outside. */
  openIndex: number
}

/**
 * The open requests of a server. A growing `Set` keeps the requests of its old table alive until the next full garbage
 * collection, which delayed the release of one request in ten by many seconds.
 */
export class OpenRequests<T extends ListedRequest> implements Iterable<T> {
  readonly #requests: T[] = []

  get size(): number {
    return this.#requests.length
  }

  add(request: T): void {
    if (request.openIndex < 0) request.openIndex = this.#requests.push(request) - 1
  }

  /** Moves the last request to the free index. */
  delete(request: T): void {
    const index = request.openIndex
    if (index < 0) return
    request.openIndex = -1
    const last = this.#requests.pop() as T
    if (last === request) return
    this.#requests[index] = last
    last.openIndex = index
  }

  /** Iterates over a snapshot: requests may end meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return this.#requests.slice()[Symbol.iterator]()
  }
}
