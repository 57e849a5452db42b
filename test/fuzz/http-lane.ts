/** One client connection that sends requests one after the other and reports how each ended. Fast enough for millions. */
import { connect, type Socket } from 'node:net'

/**
 * `closed`: before a complete response; `silent`: no byte before the timeout; `malformed`: bytes that are no response, or
 * more than one.
 */
export interface ResponseJson {
  readonly ending: 'whole' | 'closed' | 'silent' | 'malformed'
  /** 0 without a response. */
  readonly status: number
  /** Lower case. */
  readonly head: string
  readonly body: string
}

/** True for the error code of an unexpected exception, as a response or as the last event of a stream. */
export function isInternal({ head, body }: ResponseJson): boolean {
  return head.includes('x-weir-error-code: internal_error') || body.includes('"code":"internal_error"')
}

const SILENCE_MS = 20_000
const HEAD_END = '\r\n\r\n'

export class HttpLane {
  readonly #port: number
  #socket: Socket | null = null
  #held = ''
  #settle: ((ending: ResponseJson['ending'], text?: string, bodyAt?: number) => void) | null = null

  constructor(port: number) {
    this.#port = port
  }

  /** @param head request line and headers, each ended by CRLF; content-length is added */
  send(head: string, body: Buffer = Buffer.alloc(0)): Promise<ResponseJson> {
    return this.sendRaw([Buffer.from(`${head}content-length: ${body.length}${HEAD_END}`, 'latin1'), body])
  }

  sendRaw(parts: readonly Buffer[], silenceMs = SILENCE_MS): Promise<ResponseJson> {
    const { promise, resolve } = Promise.withResolvers<ResponseJson>()
    this.#settle = (ending, text = this.#held, bodyAt = 0) => {
      clearTimeout(timer)
      this.#settle = null
      if (ending !== 'whole') this.close()
      const head = text.slice(0, bodyAt).toLowerCase()
      const body = Buffer.from(text.slice(bodyAt), 'latin1').toString()
      resolve({ ending, status: Number(head.slice(9, 12)), head, body })
    }
    const timer = setTimeout(() => this.#settle?.('silent'), silenceMs)
    this.#socket ??= this.#open()
    for (const part of parts) if (part.length > 0) this.#socket.write(part)
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
      this.#settle?.('closed')
      this.close()
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
    // Bytes after the end of a response belong to no request.
    const isExact = this.#held.length === endAt && status >= 100
    const text = this.#held
    this.#held = ''
    if (head.includes('\r\nconnection: close')) this.close()
    this.#settle?.(isExact ? 'whole' : 'malformed', text, bodyAt)
  }
}

/** Such a response has no body, whatever its content-length. @source RFC 9112 section 6.3 */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304
}

function endOfBody(text: string, bodyAt: number, length: RegExpExecArray | null): number {
  return length === null ? endOfChunks(text, bodyAt) : bodyAt + Number(length[1])
}

/** Index after the last chunk; -1 if it has not arrived. */
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
