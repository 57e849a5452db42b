/** @hot The connections to one worker origin: the idle ones on a stack, one exchange at a time on each of the others. */

import { turnNowMs } from '#kernel'
import {
  type CarriedExchange,
  Connection,
  type ConnectionOwner,
  type ConnectionSettings,
} from './connection.ts'
import type { WorkerOrigin } from './worker-origin.ts'

export interface PoolSettings extends ConnectionSettings {
  /** Age at which an idle connection is closed, in milliseconds. */
  readonly keepAliveMs: number
  /** Maximum number of idle connections. */
  readonly maxIdlePerWorker: number
  /** False disables sending a request again if an idle connection breaks. */
  readonly resends?: boolean
}

/** An exchange as the pool sees it. */
export interface PooledExchange extends CarriedExchange {
  /** Set by the pool; null before and after. */
  connection: Connection | null
  onConnecting(): void
}

/** What the pools of one thread share. */
export interface PoolOwner {
  /** Open connections, including idle and connecting ones. */
  openConnectionCount: number
  /** A connection has become idle. */
  onConnectionIdle(): void
}

export class ConnectionPool implements ConnectionOwner {
  private readonly origin: WorkerOrigin
  private readonly settings: PoolSettings
  private readonly owner: PoolOwner
  /** The longest idle first. */
  private readonly idle: Connection[] = []
  private isClosed = false
  private openCount = 0

  constructor(origin: WorkerOrigin, settings: PoolSettings, owner: PoolOwner) {
    this.origin = origin
    this.settings = settings
    this.owner = owner
  }

  get resends(): boolean {
    return this.settings.resends !== false
  }

  get idleCount(): number {
    return this.idle.length
  }

  /** True when no connection is open, idle or being set up. */
  get isUnconnected(): boolean {
    return this.openCount === 0
  }

  /** Gives the exchange a connection: the one used last, or a new one. */
  dispatch(exchange: PooledExchange): void {
    const connection = this.idle.pop()
    if (connection === undefined) {
      this.dispatchFresh(exchange)
    } else if (turnNowMs() - connection.idleSinceMs < this.settings.keepAliveMs) {
      exchange.connection = connection
      connection.reuse(exchange)
    } else {
      // The most recently used one has expired, so all have.
      connection.destroy()
      this.closeIdle()
      this.dispatchFresh(exchange)
    }
  }

  /** Gives the exchange a new connection. */
  dispatchFresh(exchange: PooledExchange): void {
    this.owner.openConnectionCount++
    this.openCount++
    exchange.onConnecting()
    exchange.connection = new Connection(this.origin, this.settings, this, exchange)
  }

  /** Returns a connection after a successful exchange. */
  release(connection: Connection): void {
    const isKept =
      !this.isClosed && this.idle.length < this.settings.maxIdlePerWorker && this.settings.keepAliveMs > 0
    if (!connection.becomeIdle() || !isKept) {
      connection.destroy()
      return
    }
    connection.idleSinceMs = turnNowMs()
    this.idle.push(connection)
    this.owner.onConnectionIdle()
  }

  onConnectionClosed(connection: Connection): void {
    this.owner.openConnectionCount--
    this.openCount--
    const place = this.idle.indexOf(connection)
    if (place !== -1) this.idle.splice(place, 1)
  }

  /** Closes connections that have been idle for too long. @param nowMs `performance.now()` */
  closeExpired(nowMs: number): void {
    while (this.idle.length > 0 && nowMs - this.idle[0].idleSinceMs >= this.settings.keepAliveMs)
      this.idle[0].destroy()
  }

  /** Closes idle connections now and busy ones when they become idle. */
  close(): void {
    this.isClosed = true
    this.closeIdle()
  }

  private closeIdle(): void {
    while (this.idle.length > 0) this.idle[this.idle.length - 1].destroy()
  }
}
