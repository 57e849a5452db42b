/** Sends requests to HTTP workers: finds the worker's connections, and hands over to an exchange. */

import type { WorkerEntry } from '#kernel'
import {
  type Exchange,
  type Transport,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
  type UpstreamRequest,
} from '#kernel'
import { ConnectionPool, type PoolOwner, type PoolSettings } from './http1/connection-pool.ts'
import { Deadlines } from './http1/deadlines.ts'
import { HttpExchange } from './http1/http-exchange.ts'
import { type HeadTemplate, writeRequestHead } from './http1/request-head.ts'
import { readWorkerUrl, type WorkerUrl } from './http1/worker-origin.ts'
import { withRank } from './with-rank.ts'

/** `maxResponseHeaderBytes`, `keepAliveMs` and `maxIdlePerWorker` of the `upstream` configuration. */
export type HttpTransportOptions = PoolSettings

/** How a worker is reached: worked out once per URL. */
interface Target {
  /** Of its pool. */
  readonly key: string
  readonly pool: ConnectionPool
  readonly template: HeadTemplate
}

/** What of a worker says how to reach it; control calls know the URL alone. */
export type Destination = Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel' | 'httpPool'>>

/** Looks for idle connections that are too old happen at least this often, in milliseconds. */
const MAX_SWEEP_MS = 500

/**
 * The transport of connection mode `http`, one per thread.
 *
 * Headers go out as they are given; `authorization` of the worker is the caller's to set. A request that was written
 * on a kept connection which the worker had just closed is sent once more on a new one.
 *
 * @source docs/decisions/0001-own-http-client.md; RFC 9112
 */
export class HttpTransport implements Transport {
  readonly mode = 'http'
  readonly #options: HttpTransportOptions
  readonly #deadlines = new Deadlines()
  /** By worker URL. */
  readonly #targets = new Map<string, Target>()
  /** By origin, and by what workers there override. */
  readonly #pools = new Map<string, ConnectionPool>()
  readonly #poolOwner: PoolOwner = {
    openConnectionCount: 0,
    onConnectionIdle: () => {
      this.#sweepTimer ??= setInterval(() => this.#sweep(), this.#sweepMs).unref()
    },
  }
  readonly #sweepMs: number
  #sweepTimer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(options: HttpTransportOptions) {
    this.#options = options
    this.#sweepMs = Math.max(1, Math.min(MAX_SWEEP_MS, options.keepAliveMs / 8))
  }

  /** Failures are told to the handler, never thrown, and never before this returns. */
  open(
    worker: Destination,
    request: UpstreamRequest,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ): Exchange {
    if (this.#isClosed) return failSoon(handler, 'connect', 'the gateway has closed its connections')
    const target = this.#targets.get(worker.url) ?? this.#openTarget(worker)
    if (target === null) return failSoon(handler, 'connect', 'the worker has no http or https URL')
    const { dataParallel = null } = worker
    const sent = dataParallel === null ? request : withRank(request, dataParallel.rank)
    const head = writeRequestHead(target.template, sent)
    if (head === null)
      return failSoon(handler, 'protocol', 'method or path cannot be part of an HTTP/1.1 request')
    const exchange = new HttpExchange(
      { head, body: sent.body, isHeadRequest: request.method === 'HEAD' },
      target.pool,
      this.#deadlines,
      limits,
      handler,
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
   * Forgets workers to whom no connection is open: for a transport that also calls workers which are not in the table
   * yet, and would otherwise connect anew at each change of it.
   */
  forgetUnconnected(): void {
    for (const [url, target] of this.#targets) if (target.pool.isUnconnected) this.#targets.delete(url)
    for (const [key, pool] of this.#pools) if (pool.isUnconnected) this.#pools.delete(key)
  }

  /** Connections open on this thread, idle ones and those being set up included. */
  openConnections(): number {
    return this.#poolOwner.openConnectionCount
  }

  /** Closes every connection; exchanges under way fail as `reset`. */
  close(): void {
    this.#isClosed = true
    for (const pool of this.#pools.values()) pool.close()
    this.#pools.clear()
    this.#targets.clear()
    for (let open = this.#deadlines.anyWatched; open !== null; open = this.#deadlines.anyWatched)
      (open as HttpExchange).fail('reset', 'the gateway closed its connections')
    if (this.#sweepTimer !== null) clearInterval(this.#sweepTimer)
    this.#sweepTimer = null
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
    const target = { key, pool, template: workerUrl }
    this.#targets.set(worker.url, target)
    return target
  }

  /** Null when the worker has no http or https URL. */
  #route(worker: Destination): { key: string; settings: PoolSettings; workerUrl: WorkerUrl } | null {
    const workerUrl = readWorkerUrl(worker.dataParallel?.baseUrl ?? worker.url)
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
    if (idleCount > 0 || this.#sweepTimer === null) return
    clearInterval(this.#sweepTimer)
    this.#sweepTimer = null
  }
}

/** An exchange that ends before it begins. */
function failSoon(handler: UpstreamHandler, kind: 'connect' | 'protocol', message: string): Exchange {
  let isAborted = false
  process.nextTick(() => {
    if (!isAborted) handler.onResponseError(new UpstreamFailure(kind, message, false))
  })
  return {
    pause() {},
    resume() {},
    abort() {
      isAborted = true
    },
  }
}
