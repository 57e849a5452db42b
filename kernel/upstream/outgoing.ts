/** Builds the request headers of one attempt: forwarded client headers and the credentials of the worker. @hot */
import type { AuthService } from '../contracts/auth.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { headerOf } from '../wire/headers.ts'
import { mayHoldCredential } from './misconfigured-workers.ts'
import type { Transports } from './transports.ts'

export class OutgoingHeaders {
  /** Recognises the gateway's own keys, which are never forwarded; null without an auth plugin. */
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
   * The worker's key replaces the client's credential, which is forwarded only if the worker has no key and it is not a key
   * of the gateway.
   *
   * @param more headers that replace the client's of the same names
   * @param hasCredentials true if `more` holds the credentials, so that none are added
   */
  of(ctx: RelayContext, worker: WorkerEntry, more?: readonly string[], hasCredentials = false): HeaderList {
    const headers = ctx.forwardedHeaders.slice()
    if (more !== undefined) replace(headers, more)
    headers.push('content-type', 'application/json')
    if (this.#sendsRequestId) headers.push('x-request-id', ctx.requestId)
    if (hasCredentials || this.#writeByMode(headers, ctx, worker)) return headers
    if (worker.apiKey !== null) {
      headers.push('authorization', `Bearer ${worker.apiKey}`)
      return headers
    }
    if (!this.#sendsAuthorization) return headers
    const own = ctx.header('authorization')
    if (own !== undefined && !this.#isGatewayKey(ctx, own)) headers.push('authorization', own)
    return headers
  }

  /**
   * True if the worker receives a credential of the gateway: the worker's key, or none because the client's is not
   * forwarded. False if the client's is forwarded, or would be: a client must not be able to open breakers with bad keys.
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
    if (authorization !== undefined && this.#isGatewayKey(ctx, authorization)) return true
    const apiKey = ctx.header('x-api-key')
    return apiKey !== undefined && auth.isGatewayKey(`Bearer ${apiKey}`)
  }

  /** A hook may have changed the header after the check. */
  #isGatewayKey({ credentials }: RelayContext, authorization: string): boolean {
    if (credentials?.isGatewayKey === true && credentials.authorization === authorization) return true
    return this.auth?.isGatewayKey(authorization) === true
  }

  #writeByMode(headers: HeaderList, ctx: RelayContext, worker: WorkerEntry): boolean {
    const control = this.#transports.controlOf(worker.connectionMode)
    return control?.writeCredentials?.(headers, ctx, worker, this.#mayPassOn) ?? false
  }
}

function replace(headers: HeaderList, own: readonly string[]): void {
  for (let at = headers.length - 2; at >= 0; at -= 2)
    if (headerOf(own, headers[at]) !== undefined) headers.splice(at, 2)
  for (const text of own) headers.push(text)
}
