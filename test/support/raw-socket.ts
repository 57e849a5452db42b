/** Sends bytes as they are and reports what came back and whether the peer closed: for requests no client would make. */
import { connect } from 'node:net'

export interface RawReply {
  readonly bytes: Buffer
  /** The bytes as latin1 text. */
  readonly text: string
  /** Statuses of the responses found, in order. */
  readonly statuses: readonly number[]
  /** The peer closed within the time. */
  readonly closed: boolean
  /** From connecting to the peer's close or the end of the wait. */
  readonly elapsedMs: number
}

export interface RawOptions {
  readonly host?: string
  /**
   * How long to wait for the peer to close. By default until it is silent: 15 s for its first byte, then a second.
   */
  readonly waitMs?: number
  /** Stop as soon as what came back satisfies this, whether the peer closed or not. */
  readonly until?: (text: string) => boolean
  /** Pause between the parts, so that they arrive in packets of their own. Default 20. */
  readonly betweenPartsMs?: number
}

const FIRST_BYTE_MS = 15_000
const SILENCE_MS = 1_000
const LAST_LOOK_MS = 100

/**
 * @param parts each is one write
 */
export function sendRaw(
  port: number,
  parts: string | Buffer | readonly (string | Buffer)[],
  options: RawOptions = {},
): Promise<RawReply> {
  const writes = typeof parts === 'string' || Buffer.isBuffer(parts) ? [parts] : [...parts]
  const { promise, resolve, reject } = Promise.withResolvers<RawReply>()
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
  // A process that stood still finds its timers due before it reads what has come meanwhile.
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
    // A peer that resets has closed; only a connection that never was is the caller's mistake.
    if (error.code === 'ECONNREFUSED') reject(error)
    else finish(true)
  })
  return promise
}
