/** Makes the headers for one attempt: those of the client that may pass, and the worker's key. @hot */
import type { AuthService } from '../contracts/auth.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { mayHoldCredential } from './rejected-credentials.ts'
import type { Transports } from './transports.ts'

/** Which of the headers that are not simply copied may reach workers: worked out once. */
export class OutgoingHeaders {
  /** Tells the gateway's own keys apart, which stay here; null when nobody can. */
  auth: AuthService | null = null
  readonly #sendsRequestId: boolean
  readonly #sendsAuthorization: boolean
  readonly #transports: Transports
  readonly #mayPassOn = (authorization: string): boolean =>
    this.#sendsAuthorization && !this.auth?.isGatewayKey(authorization)

  /** @param forwardHeaders the setting `kernel.upstream.forwardHeaders` */
  constructor(forwardHeaders: readonly string[], transports: Transports) {
    this.#transports = transports
    const names = forwardHeaders.map((name) => name.toLowerCase())
    this.#sendsRequestId = names.includes('x-request-id')
    this.#sendsAuthorization = names.includes('authorization')
  }

  /**
   * The worker's key replaces the client's; the client's own goes on only when the worker has none and it is
   * not one of the gateway's.
   *
   * @param more of whoever makes the request: they take the place of the client's
   */
  of(ctx: RelayContext, worker: WorkerEntry, more?: readonly string[]): HeaderList {
    const headers = ctx.forwardedHeaders.slice()
    if (more !== undefined) replace(headers, more)
    headers.push('content-type', 'application/json')
    if (this.#sendsRequestId) headers.push('x-request-id', ctx.requestId)
    if (this.#writeOwnWay(headers, ctx, worker)) return headers
    if (worker.apiKey !== null) {
      headers.push('authorization', `Bearer ${worker.apiKey}`)
      return headers
    }
    if (!this.#sendsAuthorization) return headers
    const own = ctx.header('authorization')
    if (own !== undefined && !this.auth?.isGatewayKey(own)) headers.push('authorization', own)
    return headers
  }

  /**
   * True when the credential that a worker gets is the gateway's: the worker's key, or none because the client's is not
   * forwarded. False when the client's is sent, or would be if the client had one: then a rejection is the client's, which
   * may not open breakers at will.
   */
  areOwnCredentials(ctx: RelayContext, worker: WorkerEntry): boolean {
    const { apiKey } = worker
    const sent = this.of(ctx, worker)
    for (let at = 0; at < sent.length; at += 2) {
      const value = sent[at + 1]
      const isWorkers = apiKey !== null && (value === apiKey || value === `Bearer ${apiKey}`)
      if (!isWorkers && mayHoldCredential(sent[at]) && value === ctx.header(sent[at])) return false
    }
    return apiKey !== null || !this.#sendsAuthorization || this.#holdsGatewayKey(ctx)
  }

  #holdsGatewayKey(ctx: RelayContext): boolean {
    const { auth } = this
    if (auth === null) return false
    const authorization = ctx.header('authorization')
    if (authorization !== undefined && auth.isGatewayKey(authorization)) return true
    const apiKey = ctx.header('x-api-key')
    return apiKey !== undefined && auth.isGatewayKey(`Bearer ${apiKey}`)
  }

  #writeOwnWay(headers: HeaderList, ctx: RelayContext, worker: WorkerEntry): boolean {
    if (!worker.isExternal && worker.provider === null) return false
    const control = this.#transports.controlOf(worker.connectionMode)
    return control?.writeCredentials?.(headers, ctx, worker, this.#mayPassOn) ?? false
  }
}

function replace(headers: HeaderList, own: readonly string[]): void {
  for (let at = headers.length - 2; at >= 0; at -= 2) if (isNamed(own, headers[at])) headers.splice(at, 2)
  for (const text of own) headers.push(text)
}

function isNamed(headers: readonly string[], name: string): boolean {
  for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return true
  return false
}
