/** Runs the transport contract over the bundled and the example connection modes. */

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Host, Transport, WorkerControl } from '#kernel'
import lineEngine from '../../examples/custom-engine/line-engine.ts'
import { CONTROL_POOL } from '../../plugins/workers/http/control-call.ts'
import { httpControl } from '../../plugins/workers/http/http-control.ts'
import { HttpTransport } from '../../plugins/workers/http/http-transport.ts'
import { ANSWER, type ContractEngine, type EngineManner, transportContract } from './transport-contract.ts'

/** How one protocol encodes the behaviour that the contract requires of engines. */
interface LineProtocol {
  /** True when the text is a complete request. */
  isComplete(text: string): boolean
  /** Response to a probe; null for any other request. */
  probeResponse(text: string): string | null
  readonly begin: string
  piece(text: string): string
  readonly end: string
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function openEngine(
  scheme: string,
  protocol: LineProtocol,
  manner: EngineManner,
): Promise<ContractEngine> {
  const received = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    let hasRequest = false
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (hasRequest) left.resolve()
    })
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (!protocol.isComplete(text)) return
      hasRequest = true
      received.resolve()
      const request = text
      text = ''
      if (manner !== 'silent') respond(socket, protocol, manner, request)
    })
  })
  const port = await listen(server)
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    received: received.promise,
    left: left.promise,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function respond(socket: Socket, protocol: LineProtocol, manner: EngineManner, request: string): void {
  const probeResponse = protocol.probeResponse(request)
  if (probeResponse !== null) return void socket.write(probeResponse)
  socket.write(protocol.begin)
  const first = protocol.piece(ANSWER)
  if (manner === 'answers')
    socket.write(first + protocol.piece(' and more') + protocol.piece(' and the rest') + protocol.end)
  else if (manner === 'endless') writeOn(socket, protocol.piece('x'.repeat(1_000)))
  else if (manner === 'breaks') socket.end(first)
  else socket.write(first)
}

function writeOn(socket: Socket, piece: string): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece)) {}
  }
  socket.on('drain', more)
  more()
}

async function absentUrl(scheme: string): Promise<string> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return `${scheme}://127.0.0.1:${port}`
}

const response = (status: string, body: string) =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'm', owned_by: 'vllm' }] })

const httpProtocol: LineProtocol = {
  isComplete: (text) => (text.startsWith('POST') ? text.endsWith('{}') : text.endsWith('\r\n\r\n')),
  probeResponse(text) {
    if (text.startsWith('GET /health')) return response('200 OK', '')
    if (text.startsWith('GET /v1/models')) return response('200 OK', MODELS)
    return text.startsWith('GET') ? response('404 Not Found', '') : null
  },
  begin: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  piece: (text) => `${text.length.toString(16)}\r\n${text}\r\n`,
  end: '0\r\n\r\n',
}

transportContract('http', () => {
  const transport = new HttpTransport({
    keepAliveMs: 1_000,
    maxIdlePerWorker: 8,
    maxResponseHeaderBytes: 65_536,
  })
  const pool = new HttpTransport(CONTROL_POOL)
  return {
    transport,
    control: httpControl(pool),
    request: {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: ['content-type', 'application/json'],
      body: Buffer.from('{}'),
    },
    openEngine: (manner) => openEngine('http', httpProtocol, manner),
    absentUrl: () => absentUrl('http'),
    close: () => pool.close(),
  }
})

const lineProtocol: LineProtocol = {
  isComplete: (text) => text.endsWith('\n'),
  probeResponse: (text) => (text === 'PING\n' ? 'PONG m\n' : null),
  begin: '',
  piece: (text) => `WORD ${text}\n`,
  end: 'DONE 1 3\n',
}

transportContract('the line engine of the examples', () => {
  const seen: { transport?: Transport; control?: WorkerControl } = {}
  const host = {
    transport: (transport: Transport) => {
      seen.transport = transport
    },
    workerControl: (control: WorkerControl) => {
      seen.control = control
    },
    use: () => ({ addEngine() {} }),
  }
  lineEngine.register(host as unknown as Host, {})
  const { transport, control } = seen
  if (transport === undefined || control === undefined) throw new Error('the example registers neither')
  return {
    transport,
    control,
    request: { method: 'ASK', path: '/', headers: [], body: Buffer.from('ASK {}\n') },
    openEngine: (manner) => openEngine('lines', lineProtocol, manner),
    absentUrl: () => absentUrl('lines'),
    close: () => {},
  }
})
