/** A real HTTP worker on a free port with scripted responses; it records the requests. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type EngineShape, engineAnswers } from './engine-shape.ts'
import { type Answer, giveAnswer, jsonAnswer } from './worker-answer.ts'

export * from './engine-shape.ts'
export * from './worker-answer.ts'

/** One request as it arrived on the wire. */
export interface RecordedRequest {
  readonly method: string
  /** With the query, as received. */
  readonly path: string
  /** Names as received, in order of arrival. */
  readonly rawHeaders: readonly (readonly [name: string, value: string])[]
  /** First value of a header; undefined if absent. */
  header(name: string): string | undefined
  readonly body: Buffer
  json(): unknown
  /** `performance.now()` when the complete request had arrived. */
  readonly receivedAtMs: number
  /** `performance.now()` when the exchange ended; null while it runs. */
  closedAtMs: number | null
  /** The peer closed the connection before the response was complete. */
  isAborted: boolean
  /** Resolves when the exchange ends, by either side. */
  readonly closed: Promise<void>
}

export type Script = Answer | ((request: RecordedRequest) => Answer | Promise<Answer>)

export interface ScriptedWorkerOptions {
  /** The engine whose health and discovery routes it has. Default sglang. */
  readonly shape?: EngineShape
  /** POST paths in its OpenAPI document; default: no document. */
  readonly describes?: readonly string[]
  /** Default `['test-model']`. */
  readonly models?: readonly string[]
  /** Of the routes that a registration tries, those that it lacks. Default: none. */
  readonly lacks?: readonly string[]
  /** Default 0: any free port. */
  readonly port?: number
}

export class ScriptedWorker {
  readonly url: string
  readonly port: number
  /** All requests in order of arrival, probes included. */
  readonly requests: RecordedRequest[] = []
  readonly #server: Server
  readonly #lacks: readonly string[]
  readonly #sockets = new Set<Socket>()
  readonly #scripts: Map<string, Script>
  readonly #queued = new Map<string, Script[]>()
  readonly #watchers = new Set<() => void>()

  /** Use `startScriptedWorker`. */
  constructor(server: Server, scripts: Map<string, Script>, lacks: readonly string[]) {
    this.#server = server
    this.#lacks = lacks
    this.#scripts = scripts
    this.port = (server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => void this.#serve(request, response))
  }

  /** Sets the response of a route, such as `script('POST /v1/chat/completions', jsonAnswer({}))`. */
  script(route: string, script: Script): this {
    this.#scripts.set(route, script)
    return this
  }

  /** Sets the response to the next request of a route; several calls queue up. */
  once(route: string, script: Script): this {
    const queue = this.#queued.get(route) ?? []
    this.#queued.set(route, [...queue, script])
    return this
  }

  /** Recorded requests of one route. */
  requestsTo(route: string): RecordedRequest[] {
    return this.requests.filter((request) => routeOf(request) === route)
  }

  /** Resolves with the nth request of a route, 1-based, also if it is already complete. */
  async received(route: string, nth = 1, timeoutMs = 30_000): Promise<RecordedRequest> {
    const deadline = AbortSignal.timeout(timeoutMs)
    for (;;) {
      const found = this.requestsTo(route)[nth - 1]
      if (found !== undefined) return found
      if (deadline.aborted) throw new Error(`no request ${nth} of ${route} within ${timeoutMs} ms`)
      await this.#change(deadline)
    }
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  /** Destroys every connection, as a crash does; the port stays open. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.dropConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const recorded = await record(request, response).catch(() => null)
    if (recorded === null) return
    if (isTrial(recorded)) {
      const status = this.#lacks.includes(recorded.path) ? 404 : 400
      await giveAnswer(jsonAnswer({ detail: 'invalid' }, { status }), response)
      return
    }
    this.requests.push(recorded)
    for (const watcher of this.#watchers) watcher()
    const route = routeOf(recorded)
    const script = this.#queued.get(route)?.shift() ?? this.#scripts.get(route)
    const answer = typeof script === 'function' ? await script(recorded) : script
    await giveAnswer(answer ?? jsonAnswer({ detail: 'Not Found' }, { status: 404 }), response)
  }

  #change(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#watchers.delete(done)
        deadline.removeEventListener('abort', done)
        resolve()
      }
      this.#watchers.add(done)
      deadline.addEventListener('abort', done)
    })
  }
}

/** Starts a worker that responds to probes like the chosen engine, and to chat completions with a short text. */
export async function startScriptedWorker(options: ScriptedWorkerOptions = {}): Promise<ScriptedWorker> {
  const server = createServer({ keepAliveTimeout: 5_000 })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const answers = engineAnswers(options.shape ?? 'sglang', options.models ?? ['test-model'])
  const { describes } = options
  if (describes !== undefined) {
    const paths = Object.fromEntries(describes.map((path) => [path, { post: {} }]))
    answers.set('GET /openapi.json', jsonAnswer({ openapi: '3.1.0', paths }))
  }
  return new ScriptedWorker(server, new Map<string, Script>(answers), options.lacks ?? [])
}

function routeOf(request: RecordedRequest): string {
  return `${request.method} ${request.path.split('?', 1)[0]}`
}

async function record(request: IncomingMessage, response: ServerResponse): Promise<RecordedRequest> {
  const body = await bodyOf(request)
  const rawHeaders: [string, string][] = []
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    rawHeaders.push([request.rawHeaders[i], request.rawHeaders[i + 1]])
  }
  const closed = Promise.withResolvers<void>()
  const recorded: RecordedRequest = {
    method: request.method ?? '',
    path: request.url ?? '',
    rawHeaders,
    header: (name) => rawHeaders.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1],
    body,
    json: () => JSON.parse(body.toString()),
    receivedAtMs: performance.now(),
    closedAtMs: null,
    isAborted: false,
    closed: closed.promise,
  }
  response.on('close', () => {
    recorded.closedAtMs = performance.now()
    recorded.isAborted = !response.writableFinished
    closed.resolve()
  })
  return recorded
}

/** By events, in a fraction of the time of an iterator. */
function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => resolve(Buffer.concat(chunks)))
  request.on('error', reject)
  return promise
}

/** Routes that a registration tries with an invalid request. Scripts are for requests that a test sends, often set later. */
const TRIED = new Set([
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /generate',
  'POST /v1/embeddings',
  'POST /v1/classify',
  'POST /v1/rerank',
])

function isTrial(request: RecordedRequest): boolean {
  return TRIED.has(routeOf(request)) && request.body.toString() === '{}'
}
