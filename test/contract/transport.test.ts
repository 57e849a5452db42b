/** The connection modes that come with the gateway and with its examples, against the contract of connection modes. */

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Host, Transport, WorkerControl } from '#kernel'
import lineEngine from '../../examples/custom-engine/line-engine.ts'
import { CONTROL_POOL } from '../../plugins/workers/http/control-call.ts'
import { httpControl } from '../../plugins/workers/http/http-control.ts'
import { HttpTransport } from '../../plugins/workers/http/http-transport.ts'
import { ANSWER, type ContractEngine, type EngineManner, transportContract } from './transport-contract.ts'

/** How one protocol says what the contract asks of engines. */
interface Words {
  /** True when the text is a whole question. */
  isWhole(text: string): boolean
  /** Answers a question that is no request, such as a probe; null for a request. */
  aside(text: string): string | null
  readonly begin: string
  piece(text: string): string
  readonly end: string
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function openEngine(scheme: string, words: Words, manner: EngineManner): Promise<ContractEngine> {
  const left = Promise.withResolvers<void>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    let isAsked = false
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (isAsked) left.resolve()
    })
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (!words.isWhole(text)) return
      isAsked = true
      const question = text
      text = ''
      if (manner !== 'silent') speak(socket, words, manner, question)
    })
  })
  const port = await listen(server)
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    left: left.promise,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function speak(socket: Socket, words: Words, manner: EngineManner, question: string): void {
  const aside = words.aside(question)
  if (aside !== null) return void socket.write(aside)
  socket.write(words.begin)
  const first = words.piece(ANSWER)
  if (manner === 'answers')
    socket.write(first + words.piece(' and more') + words.piece(' and the rest') + words.end)
  else if (manner === 'endless') writeOn(socket, words.piece('x'.repeat(1_000)))
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

const httpWords: Words = {
  isWhole: (text) => (text.startsWith('POST') ? text.endsWith('{}') : text.endsWith('\r\n\r\n')),
  aside(text) {
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
    openEngine: (manner) => openEngine('http', httpWords, manner),
    absentUrl: () => absentUrl('http'),
    close: () => pool.close(),
  }
})

const lineWords: Words = {
  isWhole: (text) => text.endsWith('\n'),
  aside: (text) => (text === 'PING\n' ? 'PONG m\n' : null),
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
    openEngine: (manner) => openEngine('lines', lineWords, manner),
    absentUrl: () => absentUrl('lines'),
    close: () => {},
  }
})
