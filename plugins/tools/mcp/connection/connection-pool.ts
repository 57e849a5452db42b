/**
 * Pool of connections to tool servers. A connection belongs to one tenant, server and set of credentials, and is leased
 * until the turn ends. Idle connections are closed; failed servers are retried with growing delays.
 */
import { Interval } from '#kernel'
import type { ServerConnection } from './server-connection.ts'
import { type ServerFacts, ServerFactsByKey } from './server-facts.ts'
import { connectionKey, type ServerTarget } from './server-target.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

interface PoolLimits {
  readonly idleMs: number
  readonly maxConnections: number
}

/** A leased connection. */
export interface Lease {
  readonly connection: ServerConnection
  /** Safe to call twice. */
  release(): void
}

interface Entry {
  readonly key: string
  readonly opening: Promise<ServerConnection>
  connection: ServerConnection | null
  users: number
  usedAtMs: number
}

interface Failure {
  count: number
  untilMs: number
  readonly reason: ToolServerError
}

const FIRST_BACK_OFF_MS = 500
const LAST_BACK_OFF_MS = 30_000
const MAX_FAILURES = 1_000

/** @throws ToolServerError */
type OpenConnection = (target: ServerTarget, facts: ServerFacts) => Promise<ServerConnection>

export class ConnectionPool {
  readonly #limits: PoolLimits
  readonly #open: OpenConnection
  readonly #entries = new Map<string, Entry>()
  readonly #failures = new Map<string, Failure>()
  readonly #facts = new ServerFactsByKey()
  readonly #sweeps: Interval
  #isClosed = false

  constructor(limits: PoolLimits, open: OpenConnection) {
    this.#limits = limits
    this.#open = open
    this.#sweeps = new Interval(Math.max(50, limits.idleMs / 4), () => this.sweep(Date.now()))
  }

  get size(): number {
    return this.#entries.size
  }

  /**
   * Leases an open connection, or opens one.
   * @param place of the server, the same for all tenants
   * @throws ToolServerError
   */
  async lease(key: string, target: ServerTarget, place = key): Promise<Lease> {
    const standing = this.#entries.get(key)
    if (standing?.connection?.isClosed === true) this.#drop(standing)
    const entry = this.#entries.get(key) ?? this.#add(key, target, place)
    entry.users++
    try {
      return this.#hand(entry, await entry.opening)
    } catch (error) {
      entry.users--
      throw toToolServerError(error)
    }
  }

  /** Closes all connections, also leased ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#sweeps.stop()
    const all = [...this.#entries.values()]
    this.#entries.clear()
    // Connections that are still opening are closed once open; the stop does not wait for unresponsive servers.
    for (const entry of all) if (entry.connection === null) closeQuietly(entry)
    await Promise.allSettled(all.map((entry) => entry.connection?.close()))
  }

  /** Closes idle connections. */
  sweep(nowMs: number): void {
    for (const entry of this.#entries.values()) {
      const isIdle = entry.users === 0 && nowMs - entry.usedAtMs >= this.#limits.idleMs
      if (isIdle || entry.connection?.isClosed === true) this.#drop(entry)
    }
  }

  #hand(entry: Entry, connection: ServerConnection): Lease {
    let isHeld = true
    return {
      connection,
      release: () => {
        if (!isHeld) return
        isHeld = false
        entry.users--
        entry.usedAtMs = Date.now()
        // Dropped while leased: the last lease closes it.
        if (entry.users === 0 && this.#entries.get(entry.key) !== entry) closeQuietly(entry)
      },
    }
  }

  #add(key: string, target: ServerTarget, place: string): Entry {
    this.#refuseIfFailing(key)
    if (this.#isClosed) throw new ToolServerError('http_error', 0, 'the gateway is stopping')
    this.#makeRoom()
    const entry: Entry = {
      key,
      opening: this.#open(target, this.#facts.of(connectionKey(null, place, target))),
      connection: null,
      users: 0,
      usedAtMs: Date.now(),
    }
    this.#entries.set(key, entry)
    entry.opening.then(
      (connection) => {
        entry.connection = connection
        this.#failures.delete(key)
      },
      (error) => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
        this.#noteFailure(key, toToolServerError(error))
      },
    )
    this.#sweeps.start()
    return entry
  }

  #drop(entry: Entry): void {
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    if (entry.users === 0) closeQuietly(entry)
  }

  /** Closes the least recently used connection that is not leased. */
  #makeRoom(): void {
    if (this.#entries.size < this.#limits.maxConnections) return
    let oldest: Entry | null = null
    for (const entry of this.#entries.values())
      if (entry.users === 0 && (oldest === null || entry.usedAtMs < oldest.usedAtMs)) oldest = entry
    if (oldest === null)
      throw new ToolServerError('http_error', 0, 'too many tool servers are in use; retry later')
    this.#drop(oldest)
  }

  #refuseIfFailing(key: string): void {
    const failure = this.#failures.get(key)
    if (failure !== undefined && Date.now() < failure.untilMs) throw failure.reason
  }

  #noteFailure(key: string, reason: ToolServerError): void {
    const count = (this.#failures.get(key)?.count ?? 0) + 1
    const waitMs = Math.min(LAST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (count - 1))
    // Deleted first, so that the map's order is that of the last failure.
    this.#failures.delete(key)
    this.#failures.set(key, { count, untilMs: Date.now() + waitMs, reason })
    if (this.#failures.size <= MAX_FAILURES) return
    const [oldest] = this.#failures.keys()
    this.#failures.delete(oldest)
  }
}

function closeQuietly(entry: Entry): void {
  entry.opening.then((connection) => connection.close()).catch(() => {})
}
