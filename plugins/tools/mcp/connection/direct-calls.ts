/**
 * Sends tool calls without the protocol library: one request, one response. Everything else uses the library: the
 * handshake, lists, requests of the server, resumed streams, and every response other than 200 (credentials, redirects, a
 * lost session).
 */
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { HeaderList, UpstreamFailure } from '#kernel'
import { tryParseJson } from '#shared'
import type { Post, PostClient, PostListener, ResumePoint } from '../net/post-client.ts'
import { SERVER_CLOSED, toResponse } from '../net/response-stream.ts'
import type { ObservedTransport } from './observed-transport.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

export interface DirectCallParts {
  readonly posts: PostClient
  /** The library's transport, for all messages that `posts` does not send. */
  readonly transport: ObservedTransport
  /** Headers of the next request, session and credentials among them. */
  readonly headers: () => HeaderList
  /** Responds to the next request of this id without sending it. */
  readonly answerWith: (id: number, response: Response) => void
  /** Connect timeout for the text of an error, milliseconds. */
  readonly connectMs: number
}

type CallMessage = JSONRPCMessage & { readonly id: number }

/** The library uses ids from 0; servers may store ids in 32 bits. */
const FIRST_ID = 1_000_000_000
const LAST_ID = 2_000_000_000
/** Delay before a stream that ended without its response is resumed, if the server sets none. */
const RETRY_MS = 1_000
/** Time that a stream may stay open after its response. */
const AFTER_ANSWER_MS = 1_000
const MAX_MESSAGE_CHARACTERS = 1_000

export class DirectCalls {
  readonly parts: DirectCallParts
  readonly #open = new Map<number, DirectCall>()
  #lastId = FIRST_ID
  #isClosed = false

  constructor(parts: DirectCallParts) {
    this.parts = parts
  }

  /** @returns the result of the server, unchecked. @throws errors that `toToolServerError` converts */
  call(
    name: string,
    input: Record<string, unknown>,
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new ToolServerError('http_error', 0, SERVER_CLOSED))
    this.#lastId = this.#lastId >= LAST_ID ? FIRST_ID : this.#lastId + 1
    const id = this.#lastId
    // Members in the order of the library, which may have to send the message.
    const message = {
      method: 'tools/call',
      params: { name, arguments: input },
      jsonrpc: '2.0' as const,
      id,
    }
    return new Promise((resolve, reject) => {
      const call = new DirectCall(this, message, signal, resolve, reject)
      this.#open.set(id, call)
      call.start(timeoutMs)
    })
  }

  /** Handles a message of the server. @returns true if it is the response to one of these calls */
  take(message: JSONRPCMessage): boolean {
    if (!('id' in message) || 'method' in message || typeof message.id !== 'number') return false
    const call = this.#open.get(message.id)
    if (call === undefined) return false
    if ('error' in message) call.fail(toProtocolError(message.error))
    else call.succeed(message.result)
    return true
  }

  /** Fails all calls. */
  close(): void {
    this.#isClosed = true
    for (const call of this.#open.values()) call.fail(new ToolServerError('http_error', 0, SERVER_CLOSED))
    this.parts.posts.close()
  }

  /** Called by a call when it ends. */
  forget(id: number): void {
    this.#open.delete(id)
  }
}

class DirectCall implements PostListener {
  readonly #calls: DirectCalls
  readonly #message: CallMessage
  readonly #signal: AbortSignal
  readonly #resolve: (result: unknown) => void
  readonly #reject: (error: Error) => void
  readonly #abort = () => this.#cancel('cancelled')
  #timer: NodeJS.Timeout | null = null
  #post: Post | null = null
  #isOver = false

  constructor(
    calls: DirectCalls,
    message: CallMessage,
    signal: AbortSignal,
    resolve: (result: unknown) => void,
    reject: (error: Error) => void,
  ) {
    this.#calls = calls
    this.#message = message
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
  }

  start(timeoutMs: number): void {
    const { posts, headers } = this.#calls.parts
    if (this.#signal.aborted) {
      this.fail(new ToolServerError('http_error', 0, 'cancelled'))
      return
    }
    this.#signal.addEventListener('abort', this.#abort)
    this.#timer = setTimeout(() => this.#cancel('no response in time'), timeoutMs)
    this.#post = posts.post(headers(), Buffer.from(JSON.stringify(this.#message)), this)
  }

  succeed(result: unknown): void {
    if (!this.#end()) return
    this.#resolve(result)
  }

  fail(error: Error): void {
    if (!this.#end()) return
    this.#reject(error)
  }

  onText(text: string, isWhole: boolean): void {
    const messages = tryParseJson(text)
    for (const message of Array.isArray(messages) ? messages : [messages])
      if (typeof message === 'object' && message !== null) this.#calls.parts.transport.receive(message)
    // An invalid event of a stream does not affect the others.
    if (this.#isOver) {
      if (!isWhole) this.#cutLater()
    } else if (isWhole)
      this.fail(new ToolServerError('mcp_protocol_error', 0, 'the response is for another request'))
  }

  onEnd(place: ResumePoint | null): void {
    this.#post = null
    if (this.#timer !== null && this.#isOver) this.#stopTimer()
    if (this.#isOver) return
    if (place === null) this.fail(new ToolServerError('http_error', 0, SERVER_CLOSED))
    else this.#resume(place)
  }

  onOther(status: number, headers: HeaderList, body: Buffer<ArrayBuffer>): void {
    this.#post = null
    if (this.#isOver) return
    const { answerWith, transport } = this.#calls.parts
    answerWith(this.#message.id, toResponse(status, headers, body))
    transport.send(this.#message).catch((error) => this.fail(error))
  }

  onError(error: Error): void {
    this.#post = null
    this.fail(this.#toFailure(error))
  }

  /** The library resumes the stream; it limits the number of attempts. */
  #resume({ lastId, retryMs }: ResumePoint): void {
    const wait = setTimeout(() => {
      if (this.#isOver) return
      this.#calls.parts.transport
        .send(this.#message, { resumptionToken: lastId })
        .catch((error) => this.fail(error))
    }, retryMs ?? RETRY_MS)
    wait.unref()
  }

  /** Most streams end with their response; one that stays open would occupy a connection. */
  #cutLater(): void {
    if (this.#post === null || this.#timer !== null) return
    this.#timer = setTimeout(() => this.#post?.abort(), AFTER_ANSWER_MS).unref()
  }

  /** Cancels the call and notifies the server. */
  #cancel(reason: string): void {
    if (this.#isOver) return
    this.#post?.abort()
    const params = { requestId: this.#message.id, reason }
    const notice = { jsonrpc: '2.0' as const, method: 'notifications/cancelled', params }
    this.#calls.parts.transport.send(notice).catch(() => {})
    this.fail(new ToolServerError('http_error', 0, reason))
  }

  #toFailure(error: Error): Error {
    const { kind, cause } = error as UpstreamFailure
    if (kind === undefined) return error
    if (cause !== undefined && kind === 'connect') return toToolServerError(cause)
    if (kind === 'connect')
      return new Error(`no connection within ${this.#calls.parts.connectMs} ms`, { cause: error })
    if (kind === 'reset') return new ToolServerError('http_error', 0, SERVER_CLOSED, { cause: error })
    return new ToolServerError('http_error', 0, 'cannot reach the server', { cause: error })
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#calls.forget(this.#message.id)
    this.#signal.removeEventListener('abort', this.#abort)
    this.#stopTimer()
    return true
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}

function toProtocolError(error: unknown): ToolServerError {
  const { code, message } = (error ?? {}) as Record<string, unknown>
  const words =
    typeof message === 'string'
      ? message.slice(0, MAX_MESSAGE_CHARACTERS)
      : 'the server reported an error without a message'
  return new ToolServerError('mcp_protocol_error', typeof code === 'number' ? code : 0, words)
}
