/**
 * The `fetch` of the protocol library. Unlike the platform's it checks and pins addresses, limits the size of responses,
 * has timeouts and follows no redirects.
 */
import {
  type IncomingMessage,
  Agent as PlainAgent,
  type RequestOptions,
  request as requestPlain,
} from 'node:http'
import { request as requestSecure, Agent as SecureAgent } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkHost, lookupFor, type ReachRules } from '#shared'
import {
  ByteLimitExceeded,
  ResponseStream,
  readWhole,
  streamLimit,
  toResponse,
  wholeLimit,
} from './response-stream.ts'
import { parseMessage } from './rpc-event.ts'

export interface FetchOptions {
  readonly rules: ReachRules
  /** DNS, TCP and TLS together, milliseconds. */
  readonly connectMs: number
  /** From a request to the end of its response, milliseconds; not for streams that stay open. */
  readonly responseMs: number
  /** Maximum bytes of one response, or of one event of a stream that stays open. */
  readonly maxResponseBytes: number
  /** PEM of certificate authorities that replace those of the system. */
  readonly ca?: string
  /** Called when the server exceeds a limit; the connection must be closed. */
  readonly onFlood: (error: Error) => void
}

/** State of one `fetch` until its response begins. */
interface Exchange {
  readonly url: URL
  readonly init: RequestInit
  readonly isOwnStream: boolean
  readonly requestId: number | null
}

const MAX_SOCKETS = 32
/** Of responses that are not messages, such as metadata of authorization servers. */
const MAX_OTHER_BYTES = 65_536
/** Below the five seconds after which many servers close an idle connection. */
const IDLE_SOCKET_MS = 4_000

export class GuardedFetch {
  readonly #options: FetchOptions
  readonly #plain: PlainAgent
  readonly #secure: SecureAgent
  readonly #reconnects = new ReconnectLimiter()
  /** Responses received before their request is sent, by its id. */
  readonly #ready = new Map<number, Response>()

  constructor(options: FetchOptions) {
    this.#options = options
    const lookup = lookupFor(options.rules)
    const shared = { keepAlive: true, maxSockets: MAX_SOCKETS, timeout: IDLE_SOCKET_MS, lookup }
    this.#plain = new PlainAgent(shared)
    this.#secure = new SecureAgent({ ...shared, ca: options.ca, rejectUnauthorized: true })
  }

  /** Same signature as the platform's `fetch`, for the few ways in which the protocol library calls it. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input)
    checkHost(url, this.#options.rules)
    const body = bodyOf(init)
    const { method, id } = readMessage(body)
    const isListening = method === 'subscriptions/listen'
    const isOwnStream = isListening || ((init.method ?? 'GET') === 'GET' && acceptsOnlyEvents(init))
    if (isOwnStream) await this.#reconnects.wait(init.signal ?? null)
    const requestId = typeof method === 'string' && typeof id === 'number' ? id : null
    const ready = requestId === null ? undefined : this.#ready.get(requestId)
    if (requestId === null || ready === undefined)
      return this.#send({ url, init, isOwnStream, requestId }, body)
    this.#ready.delete(requestId)
    return ready
  }

  /** Responds to the next request of this id without sending it, because `ServerRequests` has sent it. */
  answerWith(requestId: number, response: Response): void {
    this.#ready.set(requestId, response)
  }

  /** Closes all connections. */
  close(): void {
    this.#plain.destroy()
    this.#secure.destroy()
    this.#ready.clear()
  }

  #send(exchange: Exchange, body: string | null): Promise<Response> {
    const { url, init } = exchange
    const isSecure = url.protocol === 'https:'
    const headers = new Headers(init.headers)
    headers.set('accept-encoding', 'identity')
    if (body !== null) headers.set('content-length', String(Buffer.byteLength(body)))
    const options: RequestOptions = {
      method: init.method ?? 'GET',
      headers: Object.fromEntries(headers),
      agent: isSecure ? this.#secure : this.#plain,
    }
    return new Promise((resolve, reject) => {
      const request = isSecure ? requestSecure(url, options) : requestPlain(url, options)
      const abort = () => request.destroy(new Error('cancelled'))
      init.signal?.addEventListener('abort', abort, { once: true })
      const timer = exchange.isOwnStream ? null : setTimeout(() => late(), this.#options.responseMs)
      let answer: ResponseStream | null = null
      const late = () => {
        const error = new Error(`no complete response within ${this.#options.responseMs} ms`)
        if (answer === null) request.destroy(error)
        else answer.fail(error)
      }
      request.on('socket', (socket) =>
        this.#watchConnect(socket, isSecure, (error) => request.destroy(error)),
      )
      request.on('error', reject)
      request.on('close', () => {
        if (timer !== null) clearTimeout(timer)
        init.signal?.removeEventListener('abort', abort)
      })
      request.on('response', (message) => {
        const { maxResponseBytes, onFlood } = this.#options
        if (isEventStream(message)) {
          answer = new ResponseStream(message, {
            limit: streamLimit(maxResponseBytes),
            maxEventBytes: maxResponseBytes,
            requestId: exchange.requestId,
            onFlood,
          })
          resolve(toResponse(message.statusCode, message.rawHeaders, answer.body))
        } else
          readWhole(message, wholeLimit(exchange.requestId === null ? MAX_OTHER_BYTES : maxResponseBytes))
            .then((whole) => {
              // The library would parse it without bounds.
              if (isJson(message)) parseMessage(whole)
              resolve(toResponse(message.statusCode, message.rawHeaders, whole))
            })
            .catch((error) => {
              if (error instanceof ByteLimitExceeded) setImmediate(onFlood, error)
              reject(error)
            })
      })
      if (init.signal?.aborted === true) abort()
      else request.end(body ?? undefined)
    })
  }

  /** Applies the connect timeout to a new socket; a socket of the agent's pool is connected. */
  #watchConnect(socket: Socket, isSecure: boolean, fail: (error: Error) => void): void {
    if (!socket.connecting) return
    socket.setKeepAlive(true, 60_000)
    const { connectMs } = this.#options
    const timer = setTimeout(() => fail(new Error(`no connection within ${connectMs} ms`)), connectMs)
    const stop = () => clearTimeout(timer)
    socket.once(isSecure ? 'secureConnect' : 'connect', stop)
    socket.once('close', stop)
  }
}

function isJson({ headers, statusCode }: IncomingMessage): boolean {
  return statusCode === 200 && /^application\/json\b/i.test(headers['content-type'] ?? '')
}

function isEventStream({ headers }: IncomingMessage): boolean {
  return /^text\/event-stream\b/i.test(headers['content-type'] ?? '')
}

/** The protocol library sends text, and forms for token requests. */
function bodyOf({ body }: RequestInit): string | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('unsupported type of request body')
}

/** Method and id of a message of the library; empty for other bodies. */
function readMessage(body: string | null): { readonly method?: unknown; readonly id?: unknown } {
  return body?.startsWith('{') ? (JSON.parse(body) as object) : {}
}

function acceptsOnlyEvents(init: RequestInit): boolean {
  return new Headers(init.headers).get('accept') === 'text/event-stream'
}

const BURST = 5
const GAP_MS = 1_000

class ReconnectLimiter {
  #left = BURST
  #lastMs = 0

  /** Resolves when the next stream may be opened. Rejects if the signal is aborted first. */
  async wait(signal: AbortSignal | null): Promise<void> {
    const now = Date.now()
    this.#left = Math.min(BURST, this.#left + (now - this.#lastMs) / GAP_MS) - 1
    this.#lastMs = now
    if (this.#left >= 0) return
    await sleep(-this.#left * GAP_MS, undefined, { signal: signal ?? undefined })
  }
}
