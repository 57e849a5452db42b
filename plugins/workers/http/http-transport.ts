/** The transport of HTTP workers: one connection pool for each origin, one exchange for each request. */
import {
  type Exchange,
  type HttpPeer,
  Interval,
  type OutgoingHttp,
  type PeerSettings,
  type Transport,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
  type UpstreamRequest,
  type WorkerEntry,
} from '#kernel'
import { Deadlines, engineUrl, failedExchange, withMembers } from '#shared'
import { ConnectionPool, type PoolOwner, type PoolSettings } from './http1/connection-pool.ts'
import { HttpExchange } from './http1/http-exchange.ts'
import { type KnownHead, writeRequestHead } from './http1/request-head.ts'
import { readWorkerUrl, type WorkerUrl } from './http1/worker-origin.ts'

/** `maxResponseHeaderBytes`, `keepAliveMs` and `maxIdlePerWorker` of the `upstream` configuration. */
export type HttpTransportOptions = PoolSettings

/** Connection pool and request template of one worker URL. */
interface Target {
  /** Key of its pool. */
  readonly key: string
  readonly pool: ConnectionPool
  readonly template: KnownHead
}

/** What the transport needs of a worker; control calls have the URL alone. */
export type Destination = Pick<WorkerEntry, 'url'> &
  Partial<Pick<WorkerEntry, 'dataParallel' | 'httpPool' | 'runtimeType'>>

/** Longest interval between sweeps of expired idle connections, milliseconds. */
const MAX_SWEEP_MS = 500

/**
 * The transport of connection mode `http`, one per thread.
 *
 * Sends headers as given; callers set `authorization`. A request written to an idle connection that the worker was just
 * closing is sent again on a new connection.
 *
 * @source RFC 9112
 */
export class HttpTransport implements Transport {
  readonly mode = 'http'
  readonly #options: HttpTransportOptions
  readonly #deadlines = new Deadlines()
  /** By worker URL. */
  readonly #targets = new Map<string, Target>()
  /** By origin and the settings that workers override. */
  readonly #pools = new Map<string, ConnectionPool>()
  readonly #poolOwner: PoolOwner = {
    openConnectionCount: 0,
    onConnectionIdle: () => void this.#sweeps.start(),
  }
  readonly #sweeps: Interval
  #isClosed = false

  constructor(options: HttpTransportOptions) {
    this.#options = options
    const sweepMs = Math.max(1, Math.min(MAX_SWEEP_MS, options.keepAliveMs / 8))
    this.#sweeps = new Interval(sweepMs, () => this.#sweep())
  }

  /** Failures are reported to the handler, asynchronously. */
  open(
    worker: Destination,
    request: UpstreamRequest,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ): Exchange {
    if (this.#isClosed) return fail(handler, 'connect', 'the gateway has closed its connections')
    const target = this.#targets.get(worker.url) ?? this.#openTarget(worker)
    if (target === null) return fail(handler, 'connect', 'the worker has no http or https URL')
    const { dataParallel = null, runtimeType = null } = worker
    const sent = dataParallel === null ? request : withRank(request, dataParallel.rank)
    const head = writeRequestHead(target.template, sent)
    if (head === null) return fail(handler, 'protocol', 'method or path is not valid in an HTTP/1.1 request')
    const exchange = new HttpExchange(
      { head, body: sent.body, isHeadRequest: request.method === 'HEAD' },
      target.pool,
      this.#deadlines,
      limits,
      handler,
      runtimeType,
    )
    exchange.start()
    return exchange
  }

  onWorkersChanged(workers: readonly Destination[]): void {
    const keys = new Map<string, string | undefined>()
    for (const worker of workers) {
      if (this.#targets.has(worker.url)) keys.set(worker.url, this.#route(worker)?.key)
    }
    const poolsInUse = new Set<ConnectionPool>()
    for (const [url, target] of this.#targets) {
      if (keys.get(url) === target.key) poolsInUse.add(target.pool)
      else this.#targets.delete(url)
    }
    for (const [key, pool] of this.#pools) {
      if (poolsInUse.has(pool)) continue
      this.#pools.delete(key)
      pool.close()
    }
  }

  /**
   * Drops workers without open connections. For the transport of control calls, which also calls workers that are not
   * in the table yet and must keep their connections when the table changes.
   */
  forgetUnconnected(): void {
    for (const [url, target] of this.#targets) if (target.pool.isUnconnected) this.#targets.delete(url)
    for (const [key, pool] of this.#pools) if (pool.isUnconnected) this.#pools.delete(key)
  }

  /** Open connections of this thread, including idle and connecting ones. */
  openConnections(): number {
    return this.#poolOwner.openConnectionCount
  }

  /** Closes every connection; running exchanges fail as `reset`. */
  close(): void {
    this.#isClosed = true
    for (const pool of this.#pools.values()) pool.close()
    this.#pools.clear()
    this.#targets.clear()
    for (let open = this.#deadlines.anyWatched; open !== null; open = this.#deadlines.anyWatched)
      (open as HttpExchange).fail('reset', 'the gateway closed its connections')
    this.#sweeps.stop()
  }

  #openTarget(worker: Destination): Target | null {
    const route = this.#route(worker)
    if (route === null) return null
    const { key, settings, workerUrl } = route
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      pool = new ConnectionPool(workerUrl.origin, settings, this.#poolOwner)
      this.#pools.set(key, pool)
    }
    const target = { key, pool, template: { ...workerUrl, lines: [] } }
    this.#targets.set(worker.url, target)
    return target
  }

  /** Null if the worker has no http or https URL. */
  #route(worker: Destination): { key: string; settings: PoolSettings; workerUrl: WorkerUrl } | null {
    const workerUrl = readWorkerUrl(engineUrl(worker))
    if (workerUrl === null) return null
    const { httpPool } = worker
    const maxIdlePerWorker = httpPool?.maxIdle ?? this.#options.maxIdlePerWorker
    const keepAliveMs = httpPool?.idleMs ?? this.#options.keepAliveMs
    return {
      key: `${workerUrl.origin.key} ${maxIdlePerWorker} ${keepAliveMs}`,
      settings: { ...this.#options, maxIdlePerWorker, keepAliveMs },
      workerUrl,
    }
  }

  #sweep(): void {
    const nowMs = performance.now()
    let idleCount = 0
    for (const pool of this.#pools.values()) {
      pool.closeExpired(nowMs)
      idleCount += pool.idleCount
    }
    if (idleCount === 0) this.#sweeps.stop()
  }
}

function fail(handler: UpstreamHandler, kind: 'connect' | 'protocol', message: string): Exchange {
  return failedExchange(handler, new UpstreamFailure(kind, message, false))
}

/** Adds the data-parallel rank to the body, since one URL serves all ranks. Returns other bodies unchanged. */
export function withRank(request: UpstreamRequest, rank: number): UpstreamRequest {
  const { method, path, headers } = request
  if (request.body === null) return request
  const body = withMembers(request.body, new Map([['data_parallel_rank', String(rank)]]))
  return body === null ? request : { method, path, headers, body }
}

const MAX_RESPONSE_HEADER_BYTES = 32_768

/** The HTTP client of other plugins, with connections of its own. Never sends a request twice. */
export const outgoingHttp: OutgoingHttp = {
  connect({ origin, lookup, ca, keepAliveMs, maxIdle }: PeerSettings): HttpPeer {
    const transport = new HttpTransport({
      keepAliveMs,
      maxIdlePerWorker: maxIdle,
      maxResponseHeaderBytes: MAX_RESPONSE_HEADER_BYTES,
      resends: false,
      lookup,
      tls: { ca, rejectUnauthorized: true },
    })
    const destination = { url: new URL(origin).origin }
    return {
      send: (request, limits, handler) => transport.open(destination, request, limits, handler),
      close: () => transport.close(),
    }
  },
}
