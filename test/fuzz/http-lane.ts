/** One client connection that sends a request after the other and says how each ended. Made for millions of them. */
import { connect, type Socket } from 'node:net'

/**
 * Status of a whole reply; 0: the connection was closed before there was one; -1: nothing for too long; -2: bytes that are
 * no reply, or more than one.
 */
export type Ending = number

const MALFORMED = -2

const SILENCE_MS = 15_000
const HEAD_END = '\r\n\r\n'

export class HttpLane {
  readonly #port: number
  #socket: Socket | null = null
  #held = ''
  #settle: ((ending: Ending) => void) | null = null

  constructor(port: number) {
    this.#port = port
  }

  send(head: string, body: Buffer): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Ending>()
    const timer = setTimeout(() => {
      this.close()
      resolve(-1)
    }, SILENCE_MS)
    this.#settle = (ending) => {
      clearTimeout(timer)
      this.#settle = null
      resolve(ending)
    }
    this.#socket ??= this.#open()
    this.#socket.write(`${head}content-length: ${body.length}${HEAD_END}`)
    if (body.length > 0) this.#socket.write(body)
    return promise
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = null
    this.#held = ''
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#held += text
      this.#look()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.close()
      this.#settle?.(0)
    })
    return socket
  }

  #look(): void {
    const headEnd = this.#held.indexOf(HEAD_END)
    if (headEnd === -1) return
    const head = this.#held.slice(0, headEnd).toLowerCase()
    const status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: (\d+)/.exec(head)
    const bodyAt = headEnd + HEAD_END.length
    const endAt = hasNoBody(status) ? bodyAt : endOfBody(this.#held, bodyAt, length)
    if (endAt === -1 || this.#held.length < endAt) return
    // What comes after the end of a reply is a reply to nothing.
    const isExact = this.#held.length === endAt
    this.#held = ''
    if (head.includes('\r\nconnection: close')) this.close()
    this.#settle?.(isExact && status >= 100 ? status : MALFORMED)
  }
}

/** Such a reply ends with its head, whatever length that tells. @source RFC 9112 section 6.3 */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304
}

function endOfBody(text: string, bodyAt: number, length: RegExpExecArray | null): number {
  return length === null ? endOfChunks(text, bodyAt) : bodyAt + Number(length[1])
}

/** Behind the last chunk; -1 when it has not come. */
function endOfChunks(text: string, bodyAt: number): number {
  for (let at = bodyAt; ; ) {
    const lineEnd = text.indexOf('\r\n', at)
    if (lineEnd === -1) return -1
    const size = Number.parseInt(text.slice(at, lineEnd), 16)
    if (Number.isNaN(size)) return text.length + 1
    at = lineEnd + 2 + size + 2
    if (size === 0) return at
  }
}
