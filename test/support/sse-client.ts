/** A streaming client that records network reads, so that tests can check times, gaps and how events were split. */
import { createHash, type Hash } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { ChunkedDecoder } from './chunked-decoder.ts'

export interface SseRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Objects are sent as JSON. */
  readonly body?: string | Buffer | object
}

/** One received event. */
export interface SseEvent {
  /** The event field; empty when absent. */
  readonly event: string
  /** All data lines, joined. */
  readonly data: string
  /** Milliseconds since the request was sent. */
  readonly atMs: number
}

/** An open stream. */
export class SseStream {
  status = 0
  /** Lower-case names. */
  readonly headers = new Map<string, string>()
  /** Body bytes of each network read, without transfer coding. */
  readonly reads: Buffer[] = []
  readonly events: SseEvent[] = []
  /** Comment lines, such as heartbeats. */
  readonly comments: string[] = []
  bodyLength = 0
  /** The body is complete: last chunk or content-length. */
  isWhole = false
  /** Resolves when the peer ended the body or the connection. */
  readonly done: Promise<void>

  readonly #socket: Socket
  readonly #sentAtMs = performance.now()
  readonly #hash: Hash = createHash('sha256')
  readonly #finish: () => void
  readonly #watchers = new Set<() => void>()
  #head: Buffer | null = Buffer.alloc(0)
  #decoder: ChunkedDecoder | null = null
  #lengthLeft = -1
  #pending = ''
  readonly #text = new TextDecoder()
  #read: Buffer[] = []

  /** Use `openSse`. */
  constructor(socket: Socket) {
    const done = Promise.withResolvers<void>()
    this.done = done.promise
    this.#finish = () => {
      done.resolve()
      this.#notify()
    }
    this.#socket = socket
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('close', this.#finish)
    socket.on('error', () => {})
  }

  /** Milliseconds from sending the request to its first event; NaN before it. */
  get timeToFirstEventMs(): number {
    return this.events[0]?.atMs ?? Number.NaN
  }

  /** Gap before each event except the first, in milliseconds. */
  get gapsMs(): number[] {
    return this.events.slice(1).map((event, index) => event.atMs - this.events[index].atMs)
  }

  /** Number of reads that did not end at an event boundary. */
  get splitReads(): number {
    return this.reads.filter((read) => !read.subarray(-2).equals(Buffer.from('\n\n'))).length
  }

  /** Bytes of the body so far. */
  sha256(): string {
    return this.#hash.copy().digest('hex')
  }

  /** The body so far as text. */
  text(): string {
    return Buffer.concat(this.reads).toString()
  }

  /** Resolves after that many events. @throws if the stream ends before */
  async receive(count: number): Promise<SseEvent[]> {
    while (this.events.length < count) {
      if (this.#socket.destroyed || this.isWhole)
        throw new Error(`the stream ended after ${this.events.length} events`)
      await new Promise<void>((resolve) => this.#watchers.add(resolve))
    }
    return this.events.slice(0, count)
  }

  /** Stops reading, as a slow client does. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Disconnects. */
  close(): void {
    this.#socket.destroy()
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher()
    this.#watchers.clear()
  }

  #take(bytes: Buffer): void {
    try {
      const body = this.#head === null ? bytes : this.#takeHead(bytes)
      if (body.length > 0) this.#takeBody(body)
    } catch {
      // Invalid framing: the stream never becomes complete, which fails the test.
      this.#socket.destroy()
    }
    this.#notify()
    if (!this.isWhole) return
    this.#socket.destroy()
    this.#finish()
  }

  #takeHead(bytes: Buffer): Buffer {
    const head = Buffer.concat([this.#head ?? Buffer.alloc(0), bytes])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) {
      this.#head = head
      return Buffer.alloc(0)
    }
    this.#head = null
    const [statusLine, ...lines] = head.toString('latin1', 0, end).split('\r\n')
    this.status = Number(statusLine.split(' ')[1])
    for (const line of lines) {
      const colon = line.indexOf(':')
      this.headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
    }
    if (this.headers.get('transfer-encoding') === 'chunked') {
      this.#decoder = new ChunkedDecoder((part) => this.#read.push(part))
    } else this.#lengthLeft = Number(this.headers.get('content-length') ?? -1)
    this.isWhole = this.#lengthLeft === 0
    return head.subarray(end + 4)
  }

  #takeBody(bytes: Buffer): void {
    this.#read = []
    if (this.#decoder === null) {
      this.#read.push(bytes)
      if (this.#lengthLeft >= 0) {
        this.#lengthLeft -= bytes.length
        this.isWhole = this.#lengthLeft <= 0
      }
    } else {
      this.#decoder.push(bytes)
      this.isWhole = this.#decoder.isDone
    }
    const read = Buffer.concat(this.#read)
    if (read.length === 0) return
    this.reads.push(read)
    this.bodyLength += read.length
    this.#hash.update(read)
    this.#takeEvents(this.#text.decode(read, { stream: true }))
  }

  #takeEvents(text: string): void {
    const blocks = (this.#pending + text).split('\n\n')
    this.#pending = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = block.split('\n').map(splitField)
      const values = (name: string) => fields.filter(([key]) => key === name).map(([, value]) => value)
      this.comments.push(...values(''))
      if (values('data').length === 0) continue
      this.events.push({
        event: values('event')[0] ?? '',
        data: values('data').join('\n'),
        atMs: performance.now() - this.#sentAtMs,
      })
    }
  }
}

/**
 * Sends one request on a new connection and streams the response, of any content type.
 *
 * @param url with path and query
 */
export function openSse(url: string, request: SseRequest = {}): SseStream {
  const { hostname, port, pathname, search, host } = new URL(url)
  const { body = '' } = request
  const bytes =
    typeof body === 'string' || Buffer.isBuffer(body)
      ? Buffer.from(body as string)
      : Buffer.from(JSON.stringify(body))
  const headers: Record<string, string> = {
    host,
    accept: 'text/event-stream',
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    ...request.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const method = request.method ?? (bytes.length > 0 ? 'POST' : 'GET')
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  socket.write(
    Buffer.concat([Buffer.from(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes]),
  )
  return new SseStream(socket)
}

/** Reads at intervals, one read at a time, so that the upstream buffers stay full. */
export async function sip(stream: SseStream, restMs: number): Promise<void> {
  const sips = setInterval(() => {
    stream.resume()
    setImmediate(() => stream.pause())
  }, restMs)
  await stream.done
  clearInterval(sips)
}

function splitField(line: string): [string, string] {
  const colon = line.indexOf(':')
  if (colon < 0) return [line, '']
  const value = line.slice(colon + 1)
  return [line.slice(0, colon), value.startsWith(' ') ? value.slice(1) : value]
}
