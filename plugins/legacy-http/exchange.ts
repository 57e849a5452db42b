/** One request handed on and its answer handed back, piece by piece; whichever side breaks ends the other. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { GatewayError } from '#kernel'
import { legacyErrors } from './errors.ts'
import { answerHeaders, type ForwardedHead } from './forwarded-head.ts'
import type { Inner } from './inner.ts'
import { refuse } from './refusal.ts'

export class Exchange {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #inner: ClientRequest
  readonly #isDraining: () => boolean
  #reply: IncomingMessage | null = null

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    head: ForwardedHead,
    inner: Inner,
    isDraining: () => boolean,
  ) {
    this.#request = request
    this.#response = response
    this.#isDraining = isDraining
    this.#inner = inner.request(head.method, head.path, head.headers, true)
    this.#inner.on('response', (reply) => this.#onReply(reply))
    this.#inner.on('error', (error) => this.#innerFailed(error))
    response.on('close', () => this.#responseClosed())
    request.on('error', () => this.#inner.destroy())
    request.pipe(this.#inner)
  }

  /** The client has broken the framing of its body. */
  fail(error: GatewayError): void {
    this.#inner.destroy()
    if (this.#response.headersSent) breakOff(this.#response)
    else refuse(this.#response, error)
  }

  #onReply(reply: IncomingMessage): void {
    const response = this.#response
    this.#reply = reply
    const { statusCode = 502, statusMessage = '', rawHeaders } = reply
    // A request that is not whole leaves its rest on the connection.
    if (!this.#request.complete || this.#isDraining()) response.shouldKeepAlive = false
    // A client of HTTP/1.0 may name chunks in TE and still not know them.
    if (this.#request.httpVersion !== '1.1') response.useChunkedEncodingByDefault = false
    reply.on('error', () => breakOff(response))
    reply.on('close', () => {
      if (!reply.complete) breakOff(response)
    })
    response.writeHead(statusCode, statusMessage, answerHeaders(rawHeaders))
    // A stream's head must not wait for its first event.
    if (reply.headers['content-length'] === undefined) response.flushHeaders()
    reply.pipe(response)
  }

  #innerFailed(error: NodeJS.ErrnoException): void {
    if (this.#reply !== null) {
      if (!this.#reply.complete) breakOff(this.#response)
      return
    }
    const isRefused = error.code === 'ECONNREFUSED'
    refuse(
      this.#response,
      isRefused ? legacyErrors.listener_unreachable() : legacyErrors.listener_broke_off(),
    )
  }

  #responseClosed(): void {
    this.#request.unpipe(this.#inner)
    this.#request.resume()
    if (this.#reply?.complete !== true) this.#inner.destroy()
  }
}

/** The client must see that the answer is not whole; an end in order would look like one where nothing else frames it. */
function breakOff(response: ServerResponse): void {
  const { socket } = response
  if (response.writableFinished || socket === null) return
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
  else socket.destroy()
}
