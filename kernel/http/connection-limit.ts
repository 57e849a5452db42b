/**
 * Limits the client connections of a thread, so that the process keeps descriptors for workers, files and stores. Without a
 * free descriptor the server library retries to accept in a busy loop.
 */
import { readFileSync } from 'node:fs'
import type { Logger } from '../contracts/log.ts'

/** For files, stores, tool servers and connections that no client waits for. */
const RESERVED_DESCRIPTORS = 128
const MIN_CONNECTIONS = 16
/** Accepting resumes when this share of the limit is free. */
const FREE_SHARE = 1 / 16
const LOG_INTERVAL_MS = 60_000

/** A listener that can close and open again. */
interface Accepting {
  pauseAccepting(): void
  /** @returns false when it is closed or the address is not available */
  resumeAccepting(): Promise<boolean>
}

export interface ConnectionLimitOptions {
  /** Infinity disables the limit. */
  readonly max: number
  readonly log: Logger
  /** Called with true when connections are refused. */
  readonly onChange: (isPaused: boolean) => void
}

export class ConnectionLimit {
  readonly #server: Accepting
  readonly #options: ConnectionLimitOptions
  readonly #resumeAt: number
  #open = 0
  #isPaused = false
  #isResuming = false
  #loggedAtMs = Number.NEGATIVE_INFINITY

  constructor(server: Accepting, options: ConnectionLimitOptions) {
    this.#server = server
    this.#options = options
    this.#resumeAt = options.max - Math.ceil(options.max * FREE_SHARE)
  }

  opened(): void {
    this.#open++
    if (this.#isPaused || this.#open < this.#options.max) return
    this.#isPaused = true
    this.#server.pauseAccepting()
    this.#options.onChange(true)
    if (performance.now() - this.#loggedAtMs < LOG_INTERVAL_MS) return
    this.#loggedAtMs = performance.now()
    this.#options.log.warn(
      { max_connections: this.#options.max },
      'connection limit of the thread reached: new connections are refused',
    )
  }

  closed(): void {
    this.#open--
    if (this.#isPaused && !this.#isResuming && this.#open <= this.#resumeAt) this.#resume()
  }

  #resume(): void {
    this.#isResuming = true
    void this.#server.resumeAccepting().then((isAccepting) => {
      this.#isResuming = false
      if (!isAccepting) return
      this.#isPaused = false
      this.#options.onChange(false)
    })
  }
}

/**
 * Share of one thread in the connections of the process.
 *
 * @param configured `kernel.http.maxConnections`; undefined leaves a descriptor for an upstream connection beside each
 * @param threads that accept connections
 * @param limits text of `/proc/self/limits`; default: of this process. Other systems have no default limit.
 */
export function connectionsPerThread(
  configured: number | undefined,
  threads: number,
  limits = readLimits(),
): number {
  const descriptors = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY)
  const all = configured ?? Math.max(MIN_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) / 2)
  return Math.max(1, Math.floor(all / Math.max(1, threads)))
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return ''
  }
}
