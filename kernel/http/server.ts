/** The uWebSockets.js server: matches routes and creates request contexts. @hot */

import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ANONYMOUS_TENANT, type AuthService, type Identity } from '../contracts/auth.ts'
import type { ClientAddressing } from '../contracts/client-address.ts'
import type { Detached, DetachedWork } from '../contracts/detached.ts'
import type { Logger } from '../contracts/log.ts'
import type { Method } from '../contracts/route-facts.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { checkEndpoint } from '../upstream/key-scope.ts'
import { BodyBudget, type BodyLimits, UNCOUNTED_BYTES } from './body-budget.ts'
import { BodyPool } from './body-pool.ts'
import { type ClientLimits, ClientTimeouts } from './client-timeouts.ts'
import { type CompiledRoute, NO_HOOKS, wildcardRest } from './compiled-route.ts'
import { type CompiledSocket, upgradeRoute } from './compiled-socket.ts'
import { ConnectionLimit, type ConnectionLimitOptions } from './connection-limit.ts'
import { HttpContext } from './context.ts'
import type { Cors } from './cors.ts'
import { isForeignPage, isLoopback } from './foreign-page.ts'
import { Heartbeats } from './heartbeat.ts'
import { httpErrors } from './http-errors.ts'
import { HttpResponseSink } from './http-response-sink.ts'
import { LibraryCallbacks } from './library-callbacks.ts'
import { LongBodies } from './long-bodies.ts'
import { openDetached } from './memory-request.ts'
import { OpenRequests } from './open-requests.ts'
import { readBody } from './read-body.ts'
import { RefusedBody } from './refused-body.ts'
import { copyHeaders, type HeaderRules } from './request-headers.ts'
import { makeRequestId } from './request-id.ts'
import { runRequest } from './run-request.ts'
import { serverLibrary } from './server-library.ts'
import type { ServedRequest, ServerParts } from './server-parts.ts'
import { type Handshake, type OnUpgrade, readHandshake, SocketServer } from './socket-server.ts'
import type { TlsFiles } from './tls-files.ts'

export interface HttpServerOptions {
  readonly routes: readonly CompiledRoute[]
  readonly sockets?: readonly CompiledSocket[]
  /** Resolves client addresses behind proxies; null uses the address of the connection. */
  readonly clients?: ClientAddressing | null
  /** Metrics of detached work by the path of its route; null when metrics are off. Default: not counted. */
  readonly detachedMetrics?: (path: string) => RouteWatch | null
  /** Serves unknown paths; made by `compileRoute`, so that it is counted. */
  readonly unmatched: CompiledRoute
  readonly headerRules: HeaderRules
  readonly body: BodyLimits
  readonly maxJsonDepth: number
  /** Timeouts of slow clients. */
  readonly client: ClientLimits
  readonly heartbeatMs: number
  /** Client connections at once. Default: not limited. */
  readonly connections?: ConnectionLimitOptions
  /** False closes connections after one response. */
  readonly keepAlive: boolean
  /** Null serves plain HTTP. */
  readonly tls?: TlsFiles | null
  readonly cors: Cors
  readonly log: Logger
  /** Null when access lines are off. */
  readonly access: ServerParts['access']
}

const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = serverLibrary
const { _cfg: configure, LIBUS_LISTEN_EXCLUSIVE_PORT: EXCLUSIVE_PORT } = serverLibrary
/** Disables the library's own header in responses. */
configure?.('999999990007')
/** Several threads may listen on one port. */
const SHARED_PORT = 0

type Listening = (socket: us_listen_socket | false) => void
interface ListeningApp {
  listen(host: string, port: number, options: number, cb: Listening): unknown
}

/** @source RFC 9110 section 15.5.16 */
const ACCEPTED_ENCODING = { headers: ['accept-encoding', 'identity'] }
const MAX_SHOWN_ENCODING = 40

type Handler = (res: HttpResponse, req: HttpRequest) => void

type LibraryMethod = 'get' | 'post' | 'put' | 'patch' | 'del' | 'head' | 'options' | 'any'
const METHODS: Readonly<Record<Method, LibraryMethod>> = {
  GET: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'del',
}

export class HttpServer implements ServerParts {
  readonly heartbeats: Heartbeats
  readonly bodies = new BodyPool()
  readonly bodyBudget: BodyBudget
  readonly longBodies: LongBodies
  readonly maxJsonDepth: number
  readonly cors: Cors
  readonly log: Logger
  readonly access: ServerParts['access']
  readonly openRequests = new OpenRequests<ServedRequest>()
  closesConnections: boolean
  /** Created by the first `listen`: the library never frees an app, and a reload checks a configuration without listening. */
  #app: TemplatedApp | null = null
  #tls: TlsFiles | null
  /** Clients must present a certificate. */
  #needsCertificate: boolean
  /** Apps from before a renewal of certificates, whose connections stay open. */
  readonly #formerApps: TemplatedApp[] = []
  /** Address of the last successful `listen`. */
  #address: { readonly host: string; readonly port: number } | null = null
  readonly #options: HttpServerOptions
  readonly #clientTimeouts: ClientTimeouts
  readonly #connections: ConnectionLimit | null
  readonly #sockets: SocketServer
  readonly #detached = new Set<Detached>()
  readonly #callbacks = new LibraryCallbacks()
  #listenSocket: us_listen_socket | null = null
  #isStopping = false
  #isClosed = false
  #onIdle: (() => void) | null = null

  constructor(options: HttpServerOptions) {
    this.#options = options
    this.closesConnections = !options.keepAlive
    this.heartbeats = new Heartbeats(options.heartbeatMs)
    this.maxJsonDepth = options.maxJsonDepth
    this.bodyBudget = new BodyBudget(options.body)
    this.longBodies = new LongBodies(options.maxJsonDepth)
    this.cors = options.cors
    this.log = options.log
    this.access = options.access
    this.#clientTimeouts = new ClientTimeouts(options.client, this.openRequests)
    // The library's filter does not report the end of upgraded connections.
    this.#sockets = new SocketServer(this, () => this.#connections?.closed())
    this.#connections = options.connections ? new ConnectionLimit(this, options.connections) : null
    this.#tls = options.tls ?? null
    this.#needsCertificate = options.tls?.ca_file_name !== undefined
  }

  addressOf(peer: string, headers: HeaderList): string {
    return this.#options.clients?.addressOf(peer, headers) ?? peer
  }

  get openSockets(): number {
    return this.#sockets.size
  }

  /** @param isAlone no other listener may share the port @returns the port @throws Error when the address is in use */
  listen(host: string, port: number, isAlone = false): Promise<number> {
    return this.#listen(host, port, isAlone).then((taken) => {
      this.#address = { host, port: taken }
      return taken
    })
  }

  /**
   * Uses these certificates for new connections; open ones keep theirs. The old listener closes after the new one has opened
   * on the same port and the old one has accepted its backlog, which the system would reset.
   */
  renewTls(tls: TlsFiles): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    const former = this.#listenSocket
    if (this.#app !== null) this.#formerApps.push(this.#app)
    this.#app = null
    this.#tls = tls
    this.#needsCertificate = tls.ca_file_name !== undefined
    // Not listening: the next `listen` uses the new app.
    if (former === null || this.#address === null) return Promise.resolve()
    // The first turn ends before the loop polls sockets, the second right after.
    return this.#listen(this.#address.host, this.#address.port, false)
      .then(() => nextTurn())
      .then(() => nextTurn())
      .then(() => us_listen_socket_close(former))
  }

  /** Stops listening; open connections stay. */
  pauseAccepting(): void {
    if (this.#listenSocket !== null) us_listen_socket_close(this.#listenSocket)
    this.#listenSocket = null
  }

  resumeAccepting(): Promise<boolean> {
    if (this.#isClosed || this.#isStopping || this.#address === null) return Promise.resolve(false)
    const { host, port } = this.#address
    return this.#listen(host, port, false).then(
      () => true,
      () => false,
    )
  }

  #listen(host: string, port: number, isAlone: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      const app = this.#openApp() as unknown as ListeningApp
      app.listen(host, port, isAlone ? EXCLUSIVE_PORT : SHARED_PORT, (socket) => {
        if (socket === false) {
          reject(new Error(`cannot listen on ${host}:${port}: the address is in use or not on this machine`))
          return
        }
        this.#listenSocket = socket
        resolve(us_socket_local_port(socket))
      })
    })
  }

  /** Stops listening permanently; open requests finish, and sockets close after their running messages. */
  stopListening(): void {
    this.#isStopping = true
    this.closesConnections = true
    this.#sockets.drain()
    if (this.#listenSocket !== null) us_listen_socket_close(this.#listenSocket)
    this.#listenSocket = null
  }

  /** Resolves when no request is open. */
  whenIdle(): Promise<void> {
    if (this.openRequests.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Closes every connection. Must be called before the thread ends: the library aborts the process otherwise. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.heartbeats.close()
    this.#clientTimeouts.close()
    for (const work of this.#detached) work.cancel()
    this.#listenSocket = null
    this.#app?.close()
    for (const app of this.#formerApps) app.close()
    this.#callbacks.release()
  }

  requestEnded(request: ServedRequest): void {
    this.openRequests.delete(request)
    if (this.openRequests.size === 0 && this.#onIdle !== null) {
      this.#onIdle()
      this.#onIdle = null
    }
  }

  requestBegan(request: ServedRequest): void {
    this.openRequests.add(request)
    request.compiled.metrics?.onRequest()
  }

  /**
   * Runs detached work as a request.
   * @throws Error when no route is declared under the work's method and path
   */
  detach(work: DetachedWork): Detached {
    const { method, path } = work.route
    const route = this.#options.routes.find(
      ({ definition }) => definition.method === method && definition.path === path,
    )
    if (route === undefined) throw new Error(`no route ${method} ${path} is declared`)
    const metrics = this.#options.detachedMetrics?.(path) ?? null
    const { ctx, detached } = openDetached(this, route, metrics, work)
    this.#detached.add(detached)
    void detached.done.then(() => this.#detached.delete(detached))
    // Deferred, so that the caller has the handle first.
    setImmediate(() => runRequest(ctx))
    return detached
  }

  #openApp(): TemplatedApp {
    if (this.#app !== null) return this.#app
    this.#app = openApp(this.#tls)
    this.#addRoutes(this.#app)
    return this.#app
  }

  #addRoutes(app: TemplatedApp): void {
    if (this.#connections !== null)
      app.filter(this.#callbacks.add((_res, change) => this.#countConnection(Number(change) > 0)))
    const byPath = new Map<string, CompiledRoute[]>()
    for (const route of this.#options.routes) {
      const path = route.definition.path
      byPath.set(path, [...(byPath.get(path) ?? []), route])
    }
    for (const [path, routes] of byPath) this.#addPath(app, path, routes)
    for (const socket of this.#options.sockets ?? []) this.#addSocket(app, socket)
    const { unmatched } = this.#options
    this.#addRoute(app, 'any', '/*', (res, req) =>
      this.#refuse(res, req, unmatched, httpErrors.route_not_found(req.getUrl())),
    )
  }

  #countConnection(isNew: boolean): void {
    if (isNew) this.#connections?.opened()
    else this.#connections?.closed()
  }

  #addSocket(app: TemplatedApp, socket: CompiledSocket): void {
    const route = upgradeRoute(socket, (ctx) => this.#sockets.accept(ctx as HttpContext))
    const onUpgrade: OnUpgrade = (res, req, context) =>
      this.#onMatch(res, req, route, readHandshake(socket, req, context))
    const { path, bounds } = socket.definition
    app.ws(path, this.#sockets.behavior(bounds, this.#callbacks.add(onUpgrade)))
  }

  #addPath(app: TemplatedApp, path: string, routes: readonly CompiledRoute[]): void {
    const methods = routes.map((route) => route.definition.method)
    for (const route of routes) {
      const onMatch: Handler = (res, req) => this.#onMatch(res, req, route)
      this.#addRoute(app, METHODS[route.definition.method], path, onMatch)
      if (route.definition.method === 'GET') this.#addRoute(app, 'head', path, onMatch)
    }
    this.#addRoute(app, 'options', path, (res, req) => this.#preflight(res, req, routes[0]))
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
    const anyMethod = asRefusal(routes[0])
    this.#addRoute(app, 'any', path, (res, req) => {
      const method = req.getCaseSensitiveMethod()
      const error = httpErrors.method_not_allowed.with(
        { headers: ['allow', allow] },
        method,
        req.getUrl(),
        allow,
      )
      this.#refuse(res, req, anyMethod, error)
    })
  }

  #addRoute(app: TemplatedApp, method: LibraryMethod, path: string, handler: Handler): void {
    app[method](path, this.#callbacks.add(handler))
  }

  #openSink(res: HttpResponse, req: HttpRequest, route: CompiledRoute): HttpResponseSink {
    const headers = copyHeaders(req, this.#options.headerRules, route.hooks.readsAllHeaders)
    if (this.#needsCertificate && headers.problem === null && !showsCertificate(res))
      headers.problem = httpErrors.client_certificate_required()
    const requestId = headers.requestId === '' ? makeRequestId(route.requestIdPrefix) : headers.requestId
    return new HttpResponseSink(this, res, req.getCaseSensitiveMethod(), headers, requestId)
  }

  /** Reads everything that is needed of `req`, which is invalid after this turn. */
  #enter(sink: HttpResponseSink, req: HttpRequest, route: CompiledRoute): HttpContext {
    const values: string[] = []
    for (let i = 0; i < route.paramNames.length; i++) {
      const isRest = route.paramNames[i] === '*'
      values.push(isRest ? wildcardRest(req.getUrl(), route.definition.path) : (req.getParameter(i) ?? ''))
    }
    const ctx = new HttpContext(
      this,
      route,
      sink,
      sink.method,
      req.getUrl(),
      req.getQuery() ?? '',
      values,
      sink.headers,
      sink.requestId,
    )
    // Read now: the library drops it at the end of the response, and hooks may change the headers of proxies.
    if (this.access !== null || this.#options.clients != null) void ctx.clientAddress
    this.requestBegan(ctx)
    return ctx
  }

  #onMatch(res: HttpResponse, req: HttpRequest, route: CompiledRoute, handshake?: Handshake): void {
    const sink = this.#openSink(res, req, route)
    const ctx = this.#enter(sink, req, route)
    if (handshake !== undefined) this.#sockets.expect(ctx, sink, handshake)
    const { headers } = ctx
    if (headers.problem !== null) {
      this.#failAndClose(ctx, headers.problem)
      return
    }
    if (route.auth === null) this.#admit(ctx, null)
    else this.#checkAccess(ctx, res, route, route.auth)
    // Of a rejected request no byte of the body is kept.
    if (ctx.isDone || ctx.isFailing) return
    const error = this.#bodyError(ctx)
    if (error !== null) {
      const refused = new RefusedBody(ctx, error)
      res.onData((_data, isLast) => refused.drop(isLast))
    } else if (route.readsBody) readBody(ctx, res, this.#options.body.maxBodyBytes)
    else if (ctx.isAdmitted) runRequest(ctx)
  }

  /** Why the body is not read; null if it is. */
  #bodyError(ctx: HttpContext): GatewayError | null {
    const { maxBodyBytes } = this.#options.body
    const { contentLength } = ctx.headers
    if (contentLength > maxBodyBytes) return httpErrors.payload_too_large(maxBodyBytes)
    if (!ctx.compiled.readsBody) return null
    if (isEncoded(ctx))
      return httpErrors.unsupported_content_encoding.with(ACCEPTED_ENCODING, shownEncoding(ctx))
    return contentLength > UNCOUNTED_BYTES ? ctx.holdBody(contentLength) : null
  }

  #checkAccess(ctx: HttpContext, res: HttpResponse, route: CompiledRoute, auth: AuthService): void {
    const { access, takesApiKeyHeader } = route.definition
    try {
      const found = auth.check(access === 'admin' ? 'admin' : 'api', {
        authorization: ctx.header('authorization'),
        apiKey: takesApiKeyHeader === true ? ctx.header('x-api-key') : undefined,
      })
      if (found instanceof Promise) this.#admitLater(ctx, res, found)
      else this.#admit(ctx, found)
    } catch (error) {
      ctx.fail(error)
    }
  }

  /** Reads no further bytes of the body until the access check has finished. */
  #admitLater(ctx: HttpContext, res: HttpResponse, found: Promise<Identity>): void {
    const { contentLength } = ctx.headers
    const mayBeLarge = ctx.compiled.readsBody && (contentLength < 0 || contentLength > UNCOUNTED_BYTES)
    if (mayBeLarge) res.pause()
    const settle = () => {
      if (mayBeLarge && !ctx.isDone) res.resume()
    }
    found
      .then((identity) => {
        settle()
        this.#admit(ctx, identity)
        const error = ctx.moveHeldBody()
        if (error !== null) ctx.fail(error)
        else if (ctx.isAdmitted && (ctx.compiled.readsBody ? ctx.hasBody : !ctx.isReceiving)) runRequest(ctx)
      })
      .catch((error: unknown) => {
        settle()
        ctx.fail(error)
      })
  }

  #admit(ctx: HttpContext, identity: Identity | null): void {
    ctx.identity = identity
    if (
      ctx.route.access === 'admin' &&
      (identity === null || identity.role === null) &&
      this.#isForeign(ctx)
    ) {
      ctx.fail(httpErrors.foreign_page())
      return
    }
    checkEndpoint(identity, ctx.route.endpoint)
    ctx.isAdmitted = true
  }

  #isForeign(ctx: HttpContext): boolean {
    // A page of another site cannot send a valid key: browsers add none.
    if (ctx.identity !== null && ctx.identity.tenant !== ANONYMOUS_TENANT) return false
    const isLocal = this.#address !== null && isLoopback(this.#address.host)
    const isNamed = (origin: string) => this.cors.names(origin)
    return isForeignPage(ctx.header('origin'), ctx.header('host'), isNamed, isLocal)
  }

  /**
   * For framing errors, after which the connection cannot be used. The response is sent in a later turn: after a response
   * within its callback, the library would serve the next request of the packet; while one is pending, it disconnects.
   */
  #failAndClose(ctx: HttpContext, error: GatewayError): void {
    ctx.sink.closesConnection = true
    setImmediate(() => ctx.fail(error))
  }

  #refuse(res: HttpResponse, req: HttpRequest, route: CompiledRoute, error: GatewayError): void {
    const ctx = this.#enter(this.#openSink(res, req, route), req, route)
    if (ctx.headers.problem === null) ctx.fail(error)
    else this.#failAndClose(ctx, ctx.headers.problem)
  }

  #preflight(res: HttpResponse, req: HttpRequest, route: CompiledRoute): void {
    const refusal = asRefusal(route)
    const sink = this.#openSink(res, req, refusal)
    const ctx = this.#enter(sink, req, refusal)
    if (ctx.headers.problem !== null) {
      this.#failAndClose(ctx, ctx.headers.problem)
      return
    }
    const origin = ctx.header('origin')
    sink.sendPreflight(origin === undefined ? [] : this.cors.preflightHeaders(origin))
  }
}

/** The library requests and verifies a certificate, but does not require one. */
function showsCertificate(res: HttpResponse): boolean {
  const { getX509Certificate } = res as Partial<{ getX509Certificate(): string }>
  return getX509Certificate !== undefined && getX509Certificate.call(res).length > 0
}

function openApp(tls: TlsFiles | null): TemplatedApp {
  return tls === null ? App() : SSLApp(tls)
}

/** The same path and error format without hooks, for responses sent before the handler. */
function asRefusal(route: CompiledRoute): CompiledRoute {
  return { ...route, hooks: NO_HOOKS, auth: null, readsBody: false, paramNames: [] }
}

/** A compressed body cannot be inspected and has no size limit. */
function isEncoded(ctx: HttpContext): boolean {
  const encoding = ctx.header('content-encoding')
  return encoding !== undefined && encoding !== '' && encoding.toLowerCase() !== 'identity'
}

function shownEncoding(ctx: HttpContext): string {
  return (ctx.header('content-encoding') ?? '').slice(0, MAX_SHOWN_ENCODING)
}
