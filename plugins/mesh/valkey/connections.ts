/** The connections to the server: one for commands, one for reading streams, which waits, and one for durable writes. */
import { readFile } from 'node:fs/promises'
import type { Redis, RedisOptions } from 'ioredis'
import { messageOf } from '#kernel'
import type { ValkeyConfig } from './config.ts'

const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000

export class Connections {
  readonly #config: ValkeyConfig
  readonly #waitMs: number
  readonly #onError: (error: Error) => void
  #problem: string | null = null
  #all: readonly Redis[] = []

  /**
   * @param waitMs longest wait for stream entries
   * @param onError called for each failed connection attempt, and when a connection breaks
   */
  constructor(config: ValkeyConfig, waitMs: number, onError: (error: Error) => void) {
    this.#config = config
    this.#waitMs = waitMs
    this.#onError = onError
  }

  /** @throws Error if the server cannot be reached now */
  async open(): Promise<void> {
    // Loaded lazily, so that gateways without the plugin do not load the package.
    const { Redis } = await import('ioredis')
    const { timeoutMs, caFile } = this.#config
    const url = this.#config.url.replace(/^valkey/, 'redis')
    const options: RedisOptions = {
      lazyConnect: true,
      connectTimeout: timeoutMs,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      // A write must not run twice: the caller decides what to repeat.
      autoResendUnfulfilledCommands: false,
      retryStrategy: (tries) => Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)),
      ...(caFile !== null && { tls: { ca: await readAuthorities(caFile) } }),
    }
    // A server that does not answer is as good as gone: the connection may be half open.
    const open = (socketTimeout: number) => {
      const connection = new Redis(url, { ...options, socketTimeout })
      connection.on('error', (error) => {
        this.#problem = problemOf(error)
        this.#onError(error)
      })
      connection.on('ready', () => {
        this.#problem = null
      })
      return connection
    }
    this.#all = [open(timeoutMs), open(timeoutMs + this.#waitMs), open(timeoutMs)]
    try {
      await Promise.all(this.#all.map((connection) => connection.connect()))
    } catch (error) {
      this.close()
      // The library rejects with `Connection is closed`; the reason is in the event before.
      throw this.#problem === null ? error : new Error(this.#problem, { cause: error })
    }
  }

  /** Why the last attempt to connect failed; null if connected since. */
  get problem(): string | null {
    return this.#problem
  }

  close(): void {
    for (const connection of this.#all) connection.disconnect()
    this.#all = []
  }

  get commands(): Redis {
    return this.#all[0]
  }

  /** Waits for stream entries, so nothing else may use it. */
  get streams(): Redis {
    return this.#all[1]
  }

  /** Waits for the server's disk. */
  get writes(): Redis {
    return this.#all[2]
  }
}

/** @throws Error naming the setting */
async function readAuthorities(caFile: string): Promise<Buffer> {
  try {
    return await readFile(caFile)
  } catch (cause) {
    throw new Error(`caFile ${caFile} cannot be read: ${messageOf(cause)}`, { cause })
  }
}

/** Node's codes for a certificate chain that ends at no trusted authority. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)/

function problemOf(error: Error): string {
  const code = 'code' in error ? String(error.code) : ''
  if (!UNTRUSTED.test(code)) return error.message
  return `its certificate is of no trusted authority (${error.message}); set caFile to the PEM file of the authority that issued it`
}
