/** A malicious worker: a metrics page of long numbers, and an endless event that is sent byte by byte. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { discoveryResponses } from './discovery-responses.ts'
import { announceReady } from './process.ts'

const DIGITS = 60_000
/** Just below the gateway's limit of a metrics page. */
const PAGE_BYTES = 4_000_000
const LINE = `sglang:num_running_reqs ${'1'.repeat(DIGITS)}x\n`
const PAGE = LINE.repeat(Math.floor(PAGE_BYTES / LINE.length))
/** Bytes that are written, each as a chunk, before the event loop continues. */
const BYTES_A_TURN = 64

const DISCOVERY = discoveryResponses('hostile')

/** Writes single-byte chunks as fast as the client reads. */
function drip(response: ServerResponse): void {
  if (response.destroyed) return
  let isWritable = true
  for (let i = 0; i < BYTES_A_TURN; i++) isWritable = response.write('x')
  if (isWritable) setImmediate(() => drip(response))
  else response.once('drain', () => drip(response))
}

const server = createServer({ noDelay: true }, (request, response) => {
  const path = request.url ?? ''
  if (request.method === 'POST') {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: ')
    drip(response)
  } else if (path === '/metrics') {
    response.writeHead(200, { 'content-type': 'text/plain' }).end(PAGE)
  } else {
    const body = DISCOVERY[path]
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? {}))
  }
})
server.listen(0, '127.0.0.1', () => announceReady({ port: (server.address() as AddressInfo).port }))
