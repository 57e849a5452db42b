/**
 * Sends messages to a tool server with the gateway's HTTP client. Usual responses, a JSON text or an event stream, are
 * parsed here; any other response is passed on as a whole.
 *
 * @hot one per call of a tool
 */
import {
  EventSplitter,
  type Exchange,
  type HeaderList,
  type HttpPeer,
  hasCarriageReturn,
  headerOf,
  nextEventEnd,
  type UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import { type ByteLimit, ByteLimitExceeded, streamLimit, wholeLimit } from './response-stream.ts'
import { type RpcEvent, readRpcEvent } from './rpc-event.ts'

/** Receives one response; exactly one of the last three methods is called, as the last one. */
export interface PostListener {
  /** A JSON text. @param isWhole it is the body, not the data of one of its events */
  onText(text: string, isWhole: boolean): void
  /** The response is complete. @param place where its stream can be resumed; null if it cannot */
  onEnd(place: ResumePoint | null): void
  /** A response with another status or content type; `body` is complete. */
  onOther(status: number, headers: HeaderList, body: Buffer<ArrayBuffer>): void
  onError(error: Error): void
}

/** Position in an event stream at which it can be resumed. */
export interface ResumePoint {
  readonly lastId: string
  /** Delay requested by the server, milliseconds. */
  readonly retryMs: number | null
}

export interface PostClientSettings {
  readonly peer: HttpPeer
  /** Path and query. */
  readonly path: string
  readonly limits: UpstreamLimits
  readonly maxResponseBytes: number
  /** Called when the server exceeds that limit; the connection must be closed. */
  readonly onFlood: (error: Error) => void
}

/** Maximum number of parallel requests; others are queued. */
const MAX_AT_ONCE = 32

export class PostClient {
  readonly settings: PostClientSettings
  readonly #waiting = new Set<Post>()
  #running = 0

  constructor(settings: PostClientSettings) {
    this.settings = settings
  }

  /** Sends a message; never calls the listener synchronously. */
  post(headers: HeaderList, body: Buffer, listener: PostListener): Post {
    const post = new Post(this, headers, body, listener)
    if (this.#running < MAX_AT_ONCE) this.#start(post)
    else this.#waiting.add(post)
    return post
  }

  /** Drops queued requests silently; active ones fail. */
  close(): void {
    this.#waiting.clear()
    this.settings.peer.close()
  }

  /** Called by a post when it ends. */
  leave(post: Post): void {
    if (this.#waiting.delete(post)) return
    this.#running--
    const [next] = this.#waiting
    if (next === undefined) return
    this.#waiting.delete(next)
    this.#start(next)
  }

  #start(post: Post): void {
    this.#running++
    post.start()
  }
}

/** One request and its response. */
export class Post implements UpstreamHandler {
  readonly #client: PostClient
  readonly #headers: HeaderList
  readonly #body: Buffer
  readonly #listener: PostListener
  #exchange: Exchange | null = null
  #isOver = false
  #limit: ByteLimit | null = null
  /** Set for responses that are parsed here. */
  #type: 'json' | 'events' | null = null
  #status = 0
  #responseHeaders: HeaderList = []
  #length = -1
  /** A body received in one chunk. */
  #text: string | null = null
  #parts: Buffer[] = []
  #splitter: EventSplitter | null = null
  #lastId: string | null = null
  #retryMs: number | null = null

  constructor(client: PostClient, headers: HeaderList, body: Buffer, listener: PostListener) {
    this.#client = client
    this.#headers = headers
    this.#body = body
    this.#listener = listener
  }

  start(): void {
    const { peer, path, limits } = this.#client.settings
    const request = { method: 'POST', path, headers: this.#headers, body: this.#body }
    this.#exchange = peer.send(request, limits, this)
  }

  /** Cancels the request; the listener is not called again. */
  abort(): void {
    if (this.#leave()) this.#exchange?.abort()
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    if (status === 200) this.#type = typeOf(headerOf(headers, 'content-type'))
    this.#status = status
    this.#responseHeaders = headers
    this.#length = contentLength
    const { maxResponseBytes } = this.#client.settings
    if (this.#type === 'events') {
      this.#splitter = new EventSplitter()
      this.#limit = streamLimit(maxResponseBytes)
    } else this.#limit = wholeLimit(maxResponseBytes)
  }

  onResponseData(chunk: Buffer): void {
    if (this.#isOver) return
    try {
      this.#limit?.take(chunk)
    } catch (error) {
      this.#flooded(error as Error)
      return
    }
    if (this.#splitter !== null) this.#readEvents(this.#splitter, chunk)
    else if (this.#type === 'json' && chunk.length === this.#length) this.#text = chunk.toString('utf8')
    else this.#parts.push(Buffer.from(chunk))
  }

  onResponseEnd(): void {
    if (!this.#leave()) return
    if (this.#type === null)
      this.#listener.onOther(this.#status, this.#responseHeaders, Buffer.concat(this.#parts))
    else {
      if (this.#type === 'json')
        this.#listener.onText(this.#text ?? Buffer.concat(this.#parts).toString('utf8'), true)
      this.#listener.onEnd(this.#place)
    }
  }

  onResponseError(failure: UpstreamFailure): void {
    if (!this.#leave()) return
    // A stream with event ids can be resumed after a premature end.
    if (this.#place !== null) this.#listener.onEnd(this.#place)
    else this.#listener.onError(failure)
  }

  get #place(): ResumePoint | null {
    return this.#lastId === null ? null : { lastId: this.#lastId, retryMs: this.#retryMs }
  }

  #readEvents(splitter: EventSplitter, chunk: Buffer): void {
    const { maxResponseBytes } = this.#client.settings
    if (splitter.waitingBytes + chunk.length > maxResponseBytes) {
      this.#flooded(new ByteLimitExceeded(maxResponseBytes))
      return
    }
    const events = splitter.push(chunk)
    const hasCr = hasCarriageReturn(events)
    let start = 0
    while (!this.#isOver) {
      const end = nextEventEnd(events, start, hasCr)
      if (end < 0) return
      this.#deliver(readRpcEvent(events.toString('utf8', start, end)))
      start = end
    }
  }

  #deliver({ id, retryMs, data }: RpcEvent): void {
    if (id !== null) this.#lastId = id
    if (retryMs !== null) this.#retryMs = retryMs
    if (data !== null && data !== '') this.#listener.onText(data, false)
  }

  /** Closes the connection after the listener has received the reason. */
  #flooded(error: Error): void {
    if (!this.#leave()) return
    this.#exchange?.abort()
    this.#parts = []
    setImmediate(this.#client.settings.onFlood, error)
    this.#listener.onError(error)
  }

  /** False if the request has already ended. */
  #leave(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#client.leave(this)
    return true
  }
}

function typeOf(contentType: string | undefined): 'json' | 'events' | null {
  const [type] = (contentType ?? '').split(';', 1)
  const essence = type.trim().toLowerCase()
  if (essence === 'application/json') return 'json'
  return essence === 'text/event-stream' ? 'events' : null
}
