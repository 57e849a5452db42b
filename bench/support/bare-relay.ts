/**
 * The floor of a relay: reads a request with uWebSockets.js, sends it to the worker on a kept connection, and sends the body of
 * its response, without keys, limits, metrics, retries or a choice of workers. Whole responses with a length only.
 */

import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { announceReady } from './process.ts'

const { values } = parseArgs({ options: { worker: { type: 'string', default: '0' } } })
const EMPTY = Buffer.alloc(0)
const HEAD_END = '\r\n\r\n'
const idle: Connection[] = []

interface Client {
  readonly response: HttpResponse
  isGone: boolean
}

/** A connection to the worker with at most one request on it. */
class Connection {
  readonly #socket: Socket
  #received: Buffer = EMPTY
  #client: Client | null = null

  constructor() {
    this.#socket = connect(Number(values.worker), '127.0.0.1')
    this.#socket.setNoDelay(true)
    this.#socket.on('data', (bytes) => this.#take(bytes))
  }

  send(path: string, body: Buffer, client: Client): void {
    this.#client = client
    const head = `POST ${path} HTTP/1.1\r\nhost: worker\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
    this.#socket.cork()
    this.#socket.write(head + HEAD_END, 'latin1')
    this.#socket.write(body)
    this.#socket.uncork()
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd < 0) return
    const length = /content-length: *(\d+)/i.exec(this.#received.toString('latin1', 0, headEnd))?.[1]
    const body = this.#received.subarray(headEnd + HEAD_END.length)
    if (body.length < Number(length)) return
    const { response, isGone } = this.#client as Client
    this.#received = EMPTY
    idle.push(this)
    if (!isGone) response.cork(() => response.writeHeader('content-type', 'application/json').end(body))
  }
}

App()
  .post('/*', (response, request) => {
    const path = request.getUrl()
    const parts: Buffer[] = []
    const client: Client = { response, isGone: false }
    response.onAborted(() => {
      client.isGone = true
    })
    response.onData((part, isLast) => {
      // The library reuses the memory after this call.
      parts.push(Buffer.from(new Uint8Array(part)))
      if (isLast) (idle.pop() ?? new Connection()).send(path, Buffer.concat(parts), client)
    })
  })
  .listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('the bare relay cannot listen')
    announceReady({ port: us_socket_local_port(socket) })
  })
