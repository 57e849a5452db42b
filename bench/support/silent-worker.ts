/** A worker whose streams send one event and then nothing. Plain sockets keep ten thousand streams cheap. */
import { createServer } from 'node:net'
import { discoveryResponses } from './discovery-responses.ts'
import { announceReady } from './process.ts'

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'
const STREAM = `${HEAD}${EVENT.length.toString(16)}\r\n${EVENT}\r\n`

const DISCOVERY = discoveryResponses('bench')

function discoveryResponse(path: string): string {
  const value = DISCOVERY[path]
  const body = JSON.stringify(value ?? {})
  const status = value === undefined ? '404 Not Found' : '200 OK'
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

const server = createServer({ noDelay: true }, (socket) => {
  let isStreaming = false
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    if (isStreaming) return
    const [method, path] = bytes.toString('latin1', 0, 200).split(' ')
    isStreaming = method === 'POST'
    socket.write(isStreaming ? STREAM : discoveryResponse(path))
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  announceReady({ port: typeof address === 'object' && address !== null ? address.port : 0 })
})
