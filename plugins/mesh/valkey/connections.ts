/** The connections to the primary: one for commands, one for reading streams, which waits, and one for acknowledged writes. */
import { readFile } from 'node:fs/promises'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { EngineUnreachable, messageOf } from '#kernel'
import type { ValkeyConfig } from './config.ts'

const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000
/** Sentinels decide within seconds: longer pauses would delay the change to the new primary. */
const SENTINEL_PAUSE_MS = 500
const SENTINEL_PORT = 26_379

export type Connection = Redis | Cluster

export class Connections {
  readonly #config: ValkeyConfig
  readonly #waitMs: number
  readonly #onError: (error: Error) => void
  #problem: Error | null = null
  #all: readonly Connection[] = []

  /**
   * @param waitMs longest wait for stream entries
   * @param onError called for each failed connection attempt, and when a connection breaks
   */
  constructor(config: ValkeyConfig, waitMs: number, onError: (error: Error) => void) {
    this.#config = config
    this.#waitMs = waitMs
    this.#onError = onError
  }

  /** Connects again in the background after EngineUnreachable. @throws EngineUnreachable; Error if the server rejects this gateway */
  async open(): Promise<void> {
    // Loaded lazily, so that gateways without the plugin do not load the package.
    const library = await import('ioredis')
    const { timeoutMs, caFile } = this.#config
    const tls = caFile === null ? undefined : { ca: await readAuthorities(caFile) }
    // A server that does not answer is as good as gone: the connection may be half open.
    const open = (socketTimeout: number) => {
      const connection = this.#create(library, { socketTimeout, ...(tls && { tls }) })
      connection.on('error', (error: Error) => {
        this.#problem = error
        this.#onError(error)
      })
      connection.on('ready', () => {
        this.#problem = null
      })
      connection.on('end', () => this.#reopen(connection))
      return connection
    }
    this.#all = [open(timeoutMs), open(timeoutMs + this.#waitMs), open(timeoutMs)]
    const opened = Promise.all(this.#all.map((connection) => connection.connect()))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs)
    })
    try {
      await Promise.race([opened, late])
    } catch (error) {
      // The library rejects with `Connection is closed`; the reason is in the event before.
      const explained = this.explain(error, true)
      if (!(explained instanceof EngineUnreachable)) this.close()
      throw explained
    } finally {
      clearTimeout(timer)
      opened.catch(() => undefined)
    }
  }

  /** The library gives up a connection whose primary is replaced again while it connects. */
  #reopen(connection: Connection): void {
    setTimeout(() => {
      if (this.#all.includes(connection)) connection.connect().catch(() => undefined)
    }, SENTINEL_PAUSE_MS).unref()
  }

  /** @param isBroken the connection failed, whose reason is that of the last attempt to connect */
  explain(error: unknown, isBroken: boolean): Error {
    const reason = isBroken ? (this.#problem ?? error) : error
    const problem = problemOf(reason)
    return problem.isPassing
      ? new EngineUnreachable(problem.text, { cause: error })
      : new Error(problem.text, { cause: error })
  }

  close(): void {
    const all = this.#all
    this.#all = []
    for (const connection of all) connection.disconnect()
  }

  get commands(): Connection {
    return this.#all[0]
  }

  /** Waits for stream entries, so nothing else may use it. */
  get streams(): Connection {
    return this.#all[1]
  }

  /** Waits until what it wrote is acknowledged. */
  get writes(): Connection {
    return this.#all[2]
  }

  #create(
    { Redis, Cluster }: Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>,
    { socketTimeout, tls }: Pick<RedisOptions, 'socketTimeout' | 'tls'>,
  ): Connection {
    const { timeoutMs, sentinels, name, sentinelPassword, cluster } = this.#config
    const url = this.#config.url.replace(/^valkey/, 'redis')
    const options: RedisOptions = {
      lazyConnect: true,
      connectTimeout: timeoutMs,
      socketTimeout,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      // A write must not run twice: the caller decides what to repeat.
      autoResendUnfulfilledCommands: false,
      retryStrategy: (tries) =>
        Math.min(sentinels.length > 0 ? SENTINEL_PAUSE_MS : MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)),
      // A demoted server keeps its connections.
      reconnectOnError: ({ message }) => message.startsWith('READONLY'),
      ...(tls && { tls }),
    }
    if (sentinels.length === 0 && !cluster) return new Redis(url, options)
    const { username, password, pathname, protocol, hostname, port } = new URL(url)
    const shared: RedisOptions = {
      ...options,
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: tls ?? {} }),
    }
    if (cluster)
      return new Cluster([{ host: hostname, port: Number(port || 6379) }], {
        lazyConnect: true,
        enableOfflineQueue: false,
        redisOptions: shared,
        clusterRetryStrategy: (tries) => Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)),
        retryDelayOnFailover: 0,
      })
    return new Redis({
      ...shared,
      db: Number(pathname.slice(1) || 0),
      name,
      sentinels: sentinels.map((address) => {
        const { hostname: host, port: own } = new URL(`redis://${address}`)
        return { host: host.replace(/^\[|\]$/g, ''), port: Number(own || SENTINEL_PORT) }
      }),
      ...(sentinelPassword !== null && { sentinelPassword }),
      ...(protocol === 'rediss:' && { enableTLSForSentinelMode: true, sentinelTLS: tls ?? {} }),
      sentinelCommandTimeout: timeoutMs,
      sentinelRetryStrategy: () => SENTINEL_PAUSE_MS,
      failoverDetector: true,
    })
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
/** Replies of a server that starts, is demoted or cut off, or runs a long script of another client. */
const PASSING_REPLIES = /^(LOADING|MASTERDOWN|READONLY|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS) /

/** Words of the library for a broken connection or a missing one, which say nothing to an operator. */
export const BROKEN = /closed|writeable|max retries|timeout|refresh slots cache/i

/** `isPassing` unless an operator must change something. */
function problemOf(error: unknown): { readonly text: string; readonly isPassing: boolean } {
  const text = messageOf(error)
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (UNTRUSTED.test(code))
    return {
      text: `its certificate is of no trusted authority (${text}); set caFile to the PEM file of the authority that issued it`,
      isPassing: false,
    }
  const isReply = error instanceof Error && error.name === 'ReplyError'
  if (isReply) return { text, isPassing: PASSING_REPLIES.test(text) }
  const isTls = /^(ERR_TLS|ERR_SSL|EPROTO|CERT)/.test(code)
  return { text: BROKEN.test(text) ? 'the server does not answer' : text, isPassing: !isTls }
}
