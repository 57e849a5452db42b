/**
 * Sends the gateway's requests to a tool server: one request, one response. Over HTTP they use the gateway's client, and the
 * protocol library only handles responses other than 200 (credentials, redirects, a lost session) and resumes streams;
 * over other transports the library sends them. The library's own validation is not used: it rejects whole lists
 * for one invalid tool.
 */
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { type HeaderList, isObject, type UpstreamFailure } from '#kernel'
import { tryParseJson } from '#shared'
import type { Post, PostClient, PostListener, ResumePoint } from '../net/post-client.ts'
import { SERVER_CLOSED, toResponse } from '../net/response-stream.ts'
import { parseMessage } from '../net/rpc-event.ts'
import type { ObservedTransport } from './observed-transport.ts'
import {
  fromRefusal,
  fromRpcError,
  NOT_MCP,
  ToolServerError,
  toToolServerError,
} from './tool-server-error.ts'

export interface RequestOptions {
  readonly signal: AbortSignal
  /** From the request, or its last progress notification, to the response, milliseconds. */
  readonly timeoutMs: number
  /** From the request to the response, with any progress, milliseconds; null if the request asks for no progress. */
  readonly maxMs: number | null
  /** Names and values of `Mcp-Param-*` headers. */
  readonly paramHeaders?: readonly (readonly [string, string])[]
}

export interface SentRequest {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

export interface ServerRequestParts {
  /** The gateway's HTTP client; null to send with the library. */
  readonly posts: PostClient | null
  readonly transport: ObservedTransport
  /** Headers of the next request, session and credentials among them. */
  readonly headers: (request: SentRequest) => HeaderList
  /** `_meta` of every request; null before protocol 2026-07-28. */
  readonly envelope: () => Readonly<Record<string, unknown>> | null
  /** Responds to the next request of this id without sending it. */
  readonly answerWith: (id: number, response: Response) => void
  /** Notifies the server of a cancelled request. */
  readonly notifyCancelled: (id: number, reason: string) => void
  /** Connect timeout for the text of an error, milliseconds. */
  readonly connectMs: number
}

type RequestMessage = JSONRPCMessage & SentRequest & { readonly id: number }

/** The library uses ids from 0; servers may store ids in 32 bits. */
const FIRST_ID = 1_000_000_000
const LAST_ID = 2_000_000_000
/** Delay before a stream that ended without its response is resumed, if the server sets none. */
const RETRY_MS = 1_000
/** Time that a stream may stay open after its response. */
const AFTER_ANSWER_MS = 1_000

export class ServerRequests {
  readonly parts: ServerRequestParts
  readonly #open = new Map<number, OpenRequest>()
  #lastId = FIRST_ID
  #isClosed = false

  constructor(parts: ServerRequestParts) {
    this.parts = parts
  }

  /** Whether the connection speaks protocol 2026-07-28 or later. */
  get isStateless(): boolean {
    return this.parts.envelope() !== null
  }

  /** @returns the result of the server, unchecked. @throws errors that `toToolServerError` converts */
  send({ method, params }: SentRequest, options: RequestOptions): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new ToolServerError('http_error', 0, SERVER_CLOSED))
    this.#lastId = this.#lastId >= LAST_ID ? FIRST_ID : this.#lastId + 1
    const id = this.#lastId
    const envelope = this.parts.envelope()
    const meta = { ...envelope, ...(options.maxMs !== null && { progressToken: id }) }
    const hasMeta = envelope !== null || options.maxMs !== null
    const message = {
      method,
      params: hasMeta ? { ...params, _meta: meta } : params,
      jsonrpc: '2.0' as const,
      id,
    }
    return new Promise((resolve, reject) => {
      const request = new OpenRequest(this, message, options, resolve, reject)
      this.#open.set(id, request)
      request.start()
    })
  }

  /** Handles a message of the server. @returns true if it belongs to one of these requests */
  take(message: JSONRPCMessage): boolean {
    if ('method' in message) {
      if (message.method !== 'notifications/progress') return false
      const request = this.#find(message.params?.progressToken)
      request?.extend()
      return request !== undefined
    }
    const request = this.#find(message.id)
    if (request === undefined) return false
    if ('error' in message) request.fail(fromRpcError(message.error))
    else request.succeed(message.result)
    return true
  }

  /** @param id as the server sent it: some return the number as a string */
  #find(id: unknown): OpenRequest | undefined {
    return typeof id === 'number' || typeof id === 'string' ? this.#open.get(Number(id)) : undefined
  }

  /** Fails all requests. */
  close(): void {
    this.#isClosed = true
    for (const request of this.#open.values())
      request.fail(new ToolServerError('http_error', 0, SERVER_CLOSED))
    this.parts.posts?.close()
  }

  /** Called by a request when it ends. */
  forget(id: number): void {
    this.#open.delete(id)
  }
}

class OpenRequest implements PostListener {
  readonly #requests: ServerRequests
  readonly #message: RequestMessage
  readonly #options: RequestOptions
  readonly #resolve: (result: unknown) => void
  readonly #reject: (error: Error) => void
  readonly #abort = () => this.#cancel('cancelled')
  /** Ends the request; set where the library sends it. */
  #ending: AbortController | null = null
  #timer: NodeJS.Timeout | null = null
  #untilMs = 0
  #post: Post | null = null
  #isOver = false

  constructor(
    requests: ServerRequests,
    message: RequestMessage,
    options: RequestOptions,
    resolve: (result: unknown) => void,
    reject: (error: Error) => void,
  ) {
    this.#requests = requests
    this.#message = message
    this.#options = options
    this.#resolve = resolve
    this.#reject = reject
  }

  start(): void {
    const { posts, headers } = this.#requests.parts
    const { signal, timeoutMs, maxMs, paramHeaders = [] } = this.#options
    if (signal.aborted) {
      this.fail(new ToolServerError('http_error', 0, 'cancelled'))
      return
    }
    signal.addEventListener('abort', this.#abort)
    this.#untilMs = performance.now() + (maxMs ?? timeoutMs)
    this.extend()
    if (posts === null) {
      this.#sendByLibrary()
      return
    }
    const list = headers(this.#message)
    for (const header of paramHeaders) list.push(...header)
    this.#post = posts.post(list, Buffer.from(JSON.stringify(this.#message)), this)
  }

  /** Restarts the timeout, at first and after each progress notification. */
  extend(): void {
    if (this.#isOver) return
    this.#stopTimer()
    const leftMs = Math.min(this.#options.timeoutMs, this.#untilMs - performance.now())
    this.#timer = setTimeout(() => this.#cancel('no response in time'), leftMs)
  }

  succeed(result: unknown): void {
    if (this.#end()) this.#resolve(result)
  }

  fail(error: Error): void {
    if (this.#end()) this.#reject(error)
  }

  onText(text: string, isWhole: boolean): void {
    const message = readMessage(text)
    if (message !== null) this.#requests.parts.transport.receive(message)
    // An invalid event of a stream does not affect the others.
    if (this.#isOver) {
      if (!isWhole) this.#cutLater()
    } else if (isWhole) this.fail(toMismatch(message))
  }

  onEnd(place: ResumePoint | null): void {
    this.#post = null
    if (this.#timer !== null && this.#isOver) this.#stopTimer()
    if (this.#isOver) return
    // Streams cannot be resumed since protocol 2026-07-28.
    if (place === null || this.#requests.isStateless)
      this.fail(new ToolServerError('http_error', 0, SERVER_CLOSED))
    else this.#resume(place)
  }

  onOther(status: number, headers: HeaderList, body: Buffer<ArrayBuffer>): void {
    this.#post = null
    if (this.#isOver) return
    const { answerWith } = this.#requests.parts
    const refusal = this.#requests.isStateless
      ? fromRefusal(status, tryParseJson(body.toString('utf8')))
      : null
    if (refusal !== null) {
      this.fail(refusal)
      return
    }
    answerWith(this.#message.id, toResponse(status, headers, body))
    this.#sendByLibrary()
  }

  onError(error: Error): void {
    this.#post = null
    this.fail(this.#toFailure(error))
  }

  #sendByLibrary(resumptionToken?: string): void {
    const headers = Object.fromEntries(this.#options.paramHeaders ?? [])
    this.#ending ??= new AbortController()
    this.#requests.parts.transport
      .send(this.#message, { resumptionToken, headers, requestSignal: this.#ending.signal })
      .catch((error) => this.fail(error))
  }

  /** The library resumes the stream; it limits the number of attempts. */
  #resume({ lastId, retryMs }: ResumePoint): void {
    const wait = setTimeout(() => {
      if (!this.#isOver) this.#sendByLibrary(lastId)
    }, retryMs ?? RETRY_MS)
    wait.unref()
  }

  /** Most streams end with their response; one that stays open would occupy a connection. */
  #cutLater(): void {
    if (this.#post === null || this.#timer !== null) return
    this.#timer = setTimeout(() => this.#post?.abort(), AFTER_ANSWER_MS).unref()
  }

  /** Cancels the request: closes its stream, and notifies the server unless the closed stream is the notice. */
  #cancel(reason: string): void {
    if (this.#isOver) return
    const { transport, notifyCancelled } = this.#requests.parts
    this.#post?.abort()
    this.#ending?.abort()
    if (!this.#requests.isStateless || !transport.hasPerRequestStream)
      notifyCancelled(this.#message.id, reason)
    this.fail(new ToolServerError('http_error', 0, reason))
  }

  #toFailure(error: Error): Error {
    const { kind, cause } = error as UpstreamFailure
    if (kind === undefined) return error
    if (cause !== undefined && kind === 'connect') return toToolServerError(cause)
    if (kind === 'connect')
      return new Error(`no connection within ${this.#requests.parts.connectMs} ms`, { cause: error })
    if (kind === 'reset') return new ToolServerError('http_error', 0, SERVER_CLOSED, { cause: error })
    return new ToolServerError('http_error', 0, 'cannot reach the server', { cause: error })
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#requests.forget(this.#message.id)
    this.#options.signal.removeEventListener('abort', this.#abort)
    this.#stopTimer()
    return true
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}

/** @returns null for text that is not one message */
function readMessage(text: string): JSONRPCMessage | null {
  try {
    return parseMessage(Buffer.from(text))
  } catch {
    return null
  }
}

/** The error for a body that does not contain the response. @param message null if it is not a message */
function toMismatch(message: unknown): ToolServerError {
  if (message === null) return new ToolServerError('http_error', 0, NOT_MCP)
  if (isErrorWithoutId(message)) return fromRpcError(message.error)
  return new ToolServerError('mcp_protocol_error', 0, 'the response is for another request')
}

/** Servers that could not read the request do not know its id. */
function isErrorWithoutId(message: unknown): message is { readonly error: unknown } {
  return isObject(message) && isObject(message.error) && (message.id === undefined || message.id === null)
}
