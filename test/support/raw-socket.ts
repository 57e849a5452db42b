/** Sends raw bytes and reports the response bytes and whether the peer closed: for requests that HTTP clients cannot send. */
import { connect } from 'node:net'

export interface RawResponse {
  readonly bytes: Buffer
  /** The bytes as latin1 text. */
  readonly text: string
  /** Statuses of the responses found, in order. */
  readonly statuses: readonly number[]
  /** The peer closed in time. */
  readonly closed: boolean
  /** From connecting to the peer's close or the timeout. */
  readonly elapsedMs: number
}

export interface RawOptions {
  readonly host?: string
  /**
   * Timeout for the close of the peer. Default: until it is silent, that is 15 s for its first byte, then 1 s.
   */
  readonly waitMs?: number
  /** Stops once the received text satisfies this, without waiting for the close. */
  readonly until?: (text: string) => boolean
  /** Pause between the parts, so that they arrive in separate packets. Default 20. */
  readonly betweenPartsMs?: number
}

const FIRST_BYTE_MS = 15_000
const SILENCE_MS = 1_000
const LAST_LOOK_MS = 100

/** Sends the parts over one connection. @param parts one write each */
export function sendRaw(
  port: number,
  parts: string | Buffer | readonly (string | Buffer)[],
  options: RawOptions = {},
): Promise<RawResponse> {
  const writes = typeof parts === 'string' || Buffer.isBuffer(parts) ? [parts] : [...parts]
  const { promise, resolve, reject } = Promise.withResolvers<RawResponse>()
  const startedAtMs = performance.now()
  const received: Buffer[] = []
  const text = () => Buffer.concat(received).toString('latin1')
  const socket = connect({ port, host: options.host ?? '127.0.0.1', noDelay: true })

  const finish = (closed: boolean) => {
    clearTimeout(timer)
    socket.destroy()
    const bytes = Buffer.concat(received)
    const statuses = [...text().matchAll(/(?:^|\r\n|[^\r\n])HTTP\/1\.[01] (\d{3})/g)].map((match) =>
      Number(match[1]),
    )
    resolve({ bytes, text: text(), statuses, closed, elapsedMs: performance.now() - startedAtMs })
  }
  let timer = setTimeout(() => finish(false), options.waitMs ?? FIRST_BYTE_MS)
  const restart = (afterMs: number, then: () => void) => {
    clearTimeout(timer)
    timer = setTimeout(then, afterMs)
  }
  // After a stall of this process, due timers run before pending reads.
  const afterSilence = () => restart(LAST_LOOK_MS, () => finish(false))
  const writeNext = () => {
    const part = writes.shift()
    if (part === undefined || socket.destroyed) return
    socket.write(part)
    if (writes.length > 0) setTimeout(writeNext, options.betweenPartsMs ?? 20)
  }
  socket.on('connect', writeNext)
  socket.on('data', (bytes) => {
    received.push(bytes)
    if (options.waitMs === undefined) restart(SILENCE_MS, afterSilence)
    if (options.until?.(text()) === true) finish(false)
  })
  socket.on('end', () => finish(true))
  socket.on('close', () => finish(true))
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // A reset counts as closed; only a refused connection is an error of the caller.
    if (error.code === 'ECONNREFUSED') reject(error)
    else finish(true)
  })
  return promise
}
