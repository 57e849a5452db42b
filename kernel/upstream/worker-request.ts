/** Builds the request of one attempt: the body with the canonical model, and the headers with the worker's credentials. @hot */
import type { AuthService } from '../contracts/auth.ts'
import type { OutgoingAttempt } from '../contracts/hook.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RelayOptions } from '../contracts/relay-options.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { BodyEdit } from '../contracts/response-format.ts'
import type { HeaderList, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { headerOf } from '../wire/headers.ts'
import type { Transports } from './transports.ts'
import { mayHoldCredential } from './worker-warnings.ts'

/** Replaces the model of a body; every other byte stays the same. */
export function withModel(body: Buffer, peek: RoutingPeek, model: string): Buffer {
  return peek.modelStart < 0 ? body : editedBody(body, [modelEdit(peek, model)])
}

/**
 * Replaces an alias in the request's body.
 *
 * @param named model that the client sent
 * @param model its canonical id
 * @param edit another change of the body; null for none
 */
export function canonicalBody(
  ctx: RelayContext,
  named: string | null,
  model: string,
  edit: BodyEdit | null,
): Buffer {
  const body = ctx.rawBody
  const isAlias = named !== null && named !== model
  if (!isAlias) return edit === null ? body : editedBody(body, [edit])
  const peek = ctx.peek()
  if (edit === null || peek.modelStart < 0) return withModel(body, peek, model)
  return editedBody(body, [edit, modelEdit(peek, model)])
}

/** Sets members of a body that the client sent. Parses it, so that no member is sent twice. */
export function withParameters(body: Buffer, parameters: ModelParameters): Buffer {
  return Buffer.from(JSON.stringify(mergeParameters(JSON.parse(body.toString('utf8')), parameters)))
}

/** Replaces or adds members, and removes those whose parameter is null. */
export function mergeParameters(
  members: Readonly<Record<string, unknown>>,
  parameters: ModelParameters,
): Record<string, unknown> {
  const merged = Object.entries({ ...members, ...parameters })
  return Object.fromEntries(merged.filter(([name]) => parameters[name] !== null))
}

function modelEdit({ modelStart, modelEnd }: RoutingPeek, model: string): BodyEdit {
  return { start: modelStart, end: modelEnd, text: JSON.stringify(model) }
}

/** Workers of the client's format get its query too, such as `?beta=true`. */
export function withQuery(path: string, { query }: Pick<RelayContext, 'query'>): string {
  return query === '' ? path : `${path}?${query}`
}

export function toWorkerRequest(
  ctx: RelayContext,
  options: RelayOptions,
  outgoing: OutgoingHeaders,
  worker: WorkerEntry,
  body: Buffer,
): UpstreamRequest {
  return {
    method: options.method ?? 'POST',
    path: withQuery(options.path, ctx),
    headers: outgoing.of(ctx, worker, options.headers),
    body,
  }
}

/** The request after the onUpstreamRequest hooks, which may change its headers and body. A promise only if a hook returns one. */
export function throughHooks(
  ctx: RelayContext,
  worker: WorkerEntry,
  request: UpstreamRequest,
): UpstreamRequest | Promise<UpstreamRequest> {
  const { onUpstreamRequest } = ctx.hooks
  if (onUpstreamRequest === null) return request
  const { path, headers, body } = request
  const outgoing: OutgoingAttempt = { worker, path, headers, body }
  const pending = onUpstreamRequest(ctx, outgoing)
  const changed = () => (outgoing.body === body ? request : { ...request, body: outgoing.body })
  return pending instanceof Promise ? pending.then(changed) : changed()
}

/** @param edits of ranges that do not overlap. bench: relay-sse */
export function editedBody(body: Buffer, edits: readonly BodyEdit[]): Buffer {
  const ordered = edits.length === 1 ? edits : edits.toSorted((a, b) => a.start - b.start)
  let bytes = body.length
  for (const { start, end, text } of edits) bytes += Buffer.byteLength(text) - (end - start)
  const edited = Buffer.allocUnsafe(bytes)
  let from = 0
  let to = 0
  for (const { start, end, text } of ordered) {
    to += body.copy(edited, to, from, start)
    to += edited.write(text, to)
    from = end
  }
  body.copy(edited, to, from)
  return edited
}

/** The request headers of attempts: forwarded client headers and the credentials of the worker. */
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
