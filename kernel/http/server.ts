/** The uWebSockets.js server: matches routes, creates request contexts and knows the open ones. @hot */

import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js'
import type { SessionService } from '../contracts/auth.ts'
import type { Detached, DetachedWork } from '../contracts/detached.ts'
import type { Logger } from '../contracts/log.ts'
import type { ClientAddressing } from '../contracts/request-facts.ts'
import type { Method } from '../contracts/route.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { BodyBudget, type BodyLimits, BodyPool } from './body-memory.ts'
import { type ClientLimits, ClientTimeouts } from './client-timeouts.ts'
import {
  type CompiledRoute,
  type CompiledSocket,
  NO_HOOKS,
  upgradeRoute,
  wildcardRest,
} from './compiled-route.ts'
import { ConnectionLimit, type ConnectionLimitOptions } from './connection-limit.ts'
import { HttpContext } from './context.ts'
import type { Cors } from './cors.ts'
import { Heartbeats } from './heartbeat.ts'
import { httpErrors } from './http-errors.ts'
import { HttpResponseSink } from './http-response-sink.ts'
import { LongBodies } from './json-body.ts'
import { openDetached } from './memory-request.ts'
import { RefusedBody, readBody } from './read-body.ts'
import { copyHeaders, type HeaderRules, makeRequestId } from './request-headers.ts'
import { bodyError, checkAccess, runRequest } from './run-request.ts'
import { LibraryCallbacks, ServerApp } from './server-app.ts'
import { OpenRequests, type ServedRequest, type ServerParts } from './server-parts.ts'
import { type Handshake, type OnUpgrade, readHandshake, SocketServer } from './socket-server.ts'
import type { TlsFiles } from './tls-files.ts'
import { TurnLoad } from './turn-load.ts'

export interface HttpServerOptions {
  readonly routes: readonly CompiledRoute[]
  readonly sockets?: readonly CompiledSocket[]
  /** Resolves client addresses behind proxies; null uses the address of the connection. */
  readonly clients?: ClientAddressing | null
  /** Metrics of detached work by the path of its route; null when metrics are off. Default: not counted. */
  readonly detachedMetrics?: (path: string) => RouteWatch | null
  /** As `LoadedConfig.disabledRoutes`. Default: none. */
  readonly disabledRoutes?: Readonly<Record<string, string>>
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
  /** Default: none. */
  readonly sessions?: SessionService | null
  readonly log: Logger
  /** Null when access lines are off. */
  readonly access: ServerParts['access']
}

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
  readonly sessions: SessionService | null
  readonly log: Logger
  readonly access: ServerParts['access']
  readonly openRequests = new OpenRequests<ServedRequest>()
  closesConnections: boolean
  readonly #app: ServerApp
  readonly #options: HttpServerOptions
  readonly #clientTimeouts: ClientTimeouts
  readonly #connections: ConnectionLimit | null
  readonly #sockets: SocketServer
  readonly #detached = new Set<Detached>()
  readonly #callbacks = new LibraryCallbacks()
  readonly #turn = new TurnLoad()
  #onIdle: (() => void) | null = null

  constructor(options: HttpServerOptions) {
    this.#options = options
    this.closesConnections = !options.keepAlive
    this.heartbeats = new Heartbeats(options.heartbeatMs)
    this.maxJsonDepth = options.maxJsonDepth
    this.bodyBudget = new BodyBudget(options.body)
    this.longBodies = new LongBodies(options.maxJsonDepth)
    this.cors = options.cors
    this.sessions = options.sessions ?? null
    this.log = options.log
    this.access = options.access
    this.#clientTimeouts = new ClientTimeouts(options.client, this.openRequests)
    // The library's filter does not report the end of upgraded connections.
    this.#sockets = new SocketServer(this, options.body, () => this.#connections?.closed())
    this.#app = new ServerApp(options.tls ?? null, (app) => this.#addRoutes(app))
    this.#connections = options.connections ? new ConnectionLimit(this.#app, options.connections) : null
  }

  addressOf(peer: string, headers: HeaderList): string {
    return this.#options.clients?.addressOf(peer, headers) ?? peer
  }

  get openSockets(): number {
    return this.#sockets.size
  }

  /** @param isAlone no other listener may share the port @returns the port @throws Error when the address is in use */
  listen(host: string, port: number, isAlone = false): Promise<number> {
    return this.#app.listen(host, port, isAlone)
  }

  /** Uses these certificates for new connections; open ones keep theirs. */
  renewTls(tls: TlsFiles): Promise<void> {
    return this.#app.renewTls(tls)
  }

  /** Stops listening permanently; open requests finish, and sockets close after their running messages. */
  stopListening(): void {
    this.closesConnections = true
    this.#app.stopAccepting()
    this.#sockets.drain()
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
    this.heartbeats.close()
    this.#clientTimeouts.close()
    for (const work of this.#detached) work.cancel()
    this.#app.close()
    this.#callbacks.release()
  }

  requestEnded(request: ServedRequest): void {
    this.openRequests.delete(request)
    this.#turn.ended(request.startedAtMs)
    if (this.openRequests.size === 0 && this.#onIdle !== null) {
      this.#onIdle()
      this.#onIdle = null
    }
  }

  requestBegan(request: ServedRequest): void {
    this.openRequests.add(request)
    this.#turn.began(request.startedAtMs)
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
    setImmediate(() => {
      try {
        // The key may have expired or been revoked since the request was accepted.
        if (ctx.isContinuation && ctx.identity !== null)
          ctx.identity = route.auth?.recheck(ctx.identity) ?? ctx.identity
      } catch (error) {
        ctx.fail(error)
        return
      }
      runRequest(ctx)
    })
    return detached
  }

  #addRoutes(app: TemplatedApp): void {
    if (this.#connections !== null)
      app.filter(this.#callbacks.add((_res, change) => this.#countConnection(Number(change) > 0)))
    const byPath = Map.groupBy(this.#options.routes, ({ definition }) => definition.path)
    for (const [path, routes] of byPath) this.#addPath(app, path, routes)
    for (const socket of this.#options.sockets ?? []) this.#addSocket(app, socket)
    const { unmatched } = this.#options
    this.#addRoute(app, 'any', '/*', (res, req) =>
      this.#refuse(res, req, unmatched, this.#notFound(req.getUrl())),
    )
  }

  #notFound(path: string): GatewayError {
    const disabled = Object.entries(this.#options.disabledRoutes ?? {})
    const found = disabled.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`))
    return found === undefined
      ? httpErrors.route_not_found(path)
      : httpErrors.plugin_not_enabled(path, found[1])
  }

  #countConnection(isNew: boolean): void {
    if (isNew) this.#connections?.opened()
    else this.#connections?.closed()
  }

  #addSocket(app: TemplatedApp, socket: CompiledSocket): void {
    const route = upgradeRoute(socket, (ctx) => this.#sockets.accept(ctx as HttpContext))
    const onUpgrade: OnUpgrade = (res, req, context) =>
      this.#onMatch(res, req, route, 'GET', readHandshake(socket, req, context))
    const { path, bounds } = socket.definition
    app.ws(path, this.#sockets.behavior(bounds, this.#callbacks.add(onUpgrade)))
  }

  #addPath(app: TemplatedApp, path: string, routes: readonly CompiledRoute[]): void {
    const methods = routes.map((route) => route.definition.method)
    for (const route of routes) {
      const { method } = route.definition
      this.#addRoute(app, METHODS[method], path, (res, req) => this.#onMatch(res, req, route, method))
      if (method === 'GET')
        this.#addRoute(app, 'head', path, (res, req) => this.#onMatch(res, req, route, 'HEAD'))
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

  #openSink(res: HttpResponse, req: HttpRequest, route: CompiledRoute, method: string): HttpResponseSink {
    const headers = copyHeaders(req, this.#options.headerRules, route.hooks.readsAllHeaders)
    if (this.#app.needsCertificate && headers.problem === null && !showsCertificate(res))
      headers.problem = httpErrors.client_certificate_required()
    const requestId = headers.requestId === '' ? makeRequestId(route.requestIdPrefix) : headers.requestId
    return new HttpResponseSink(this, res, method, headers, requestId)
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
      route.fixedPath ?? req.getUrl(),
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

  #onMatch(
    res: HttpResponse,
    req: HttpRequest,
    route: CompiledRoute,
    method: string,
    handshake?: Handshake,
  ): void {
    const sink = this.#openSink(res, req, route, method)
    const ctx = this.#enter(sink, req, route)
    if (handshake !== undefined) this.#sockets.expect(ctx, sink, handshake)
    const { headers } = ctx
    if (headers.problem !== null) {
      this.#failAndClose(ctx, headers.problem)
      return
    }
    checkAccess(ctx, res, this.#app.isLocal, this.#turn.isFull)
    // Of a rejected request no byte of the body is kept.
    if (ctx.isDone || ctx.isFailing) return
    const { maxBodyBytes } = this.#options.body
    const error = bodyError(ctx, maxBodyBytes)
    if (error !== null) {
      const refused = new RefusedBody(ctx, error)
      res.onData((_data, isLast) => refused.drop(isLast))
    } else if (route.readsBody) readBody(ctx, res, maxBodyBytes)
    else if (ctx.isAdmitted) runRequest(ctx)
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
    const sink = this.#openSink(res, req, route, req.getCaseSensitiveMethod())
    const ctx = this.#enter(sink, req, route)
    if (ctx.headers.problem !== null) this.#failAndClose(ctx, ctx.headers.problem)
    else if (this.#turn.isFull) setImmediate(() => ctx.fail(error))
    else ctx.fail(error)
  }

  #preflight(res: HttpResponse, req: HttpRequest, route: CompiledRoute): void {
    const refusal = asRefusal(route)
    const sink = this.#openSink(res, req, refusal, 'OPTIONS')
    const ctx = this.#enter(sink, req, refusal)
    if (ctx.headers.problem !== null) {
      this.#failAndClose(ctx, ctx.headers.problem)
      return
    }
    const origin = ctx.header('origin')
    const headers = origin === undefined ? [] : this.cors.preflightHeaders(origin)
    if (!this.#turn.isFull) sink.sendPreflight(headers)
    else
      setImmediate(() => {
        if (!sink.isDone) sink.sendPreflight(headers)
      })
  }
}

/** The library requests and verifies a certificate, but does not require one. */
function showsCertificate(res: HttpResponse): boolean {
  const { getX509Certificate } = res as Partial<{ getX509Certificate(): string }>
  return getX509Certificate !== undefined && getX509Certificate.call(res).length > 0
}

/** The same path and error format without hooks, for responses sent before the handler. */
function asRefusal(route: CompiledRoute): CompiledRoute {
  return { ...route, hooks: NO_HOOKS, auth: null, readsBody: false, paramNames: [] }
}
