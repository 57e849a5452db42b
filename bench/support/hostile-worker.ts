/** A worker that means harm: a metrics page of endless digits, and an event that comes byte by byte and never ends. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { announceReady } from './process.ts'

const DIGITS = 60_000
/** Just below what is read of a page. */
const PAGE_BYTES = 4_000_000
const LINE = `sglang:num_running_reqs ${'1'.repeat(DIGITS)}x\n`
const PAGE = LINE.repeat(Math.floor(PAGE_BYTES / LINE.length))
/** Single bytes that are written in one turn. */
const BYTES_A_TURN = 64

/** What discovery asks for. */
const REPLIES: Readonly<Record<string, object>> = {
  '/health': {},
  '/v1/models': { object: 'list', data: [{ id: 'hostile', object: 'model', owned_by: 'sglang' }] },
  '/server_info': { version: '0', model_path: 'hostile' },
  '/model_info': { model_path: 'hostile', is_generation: true },
}

/** Each byte in a chunk of its own, as fast as it is read. */
function drip(response: ServerResponse): void {
  if (response.destroyed) return
  let hasRoom = true
  for (let i = 0; i < BYTES_A_TURN; i++) hasRoom = response.write('x')
  if (hasRoom) setImmediate(() => drip(response))
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
    const reply = REPLIES[path]
    response.writeHead(reply === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(reply ?? {}))
  }
})
server.listen(0, '127.0.0.1', () => announceReady({ port: (server.address() as AddressInfo).port }))
