/**
 * The simulated worker behind every subject of a benchmark, run as a process of its own. It is kept apart from the
 * product's simulated engine so that a figure never moves because the engine did. With `--count` it listens on so
 * many ports, each a worker of its own to a gateway.
 */

import { App, type HttpRequest, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { parseArgs } from 'node:util'
import { BULK_EVENTS, bulkEvent } from './bulk-stream.ts'
import { announceReady } from './process.ts'
import { SSE_CHUNK, SSE_CHUNKS, SSE_DONE } from './sse-workload.ts'

const { values } = parseArgs({ options: { count: { type: 'string', default: '1' } } })
const JSON_REPLY = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine, thank you.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 },
})

/** A chunked stream that is given one chunk per tick. */
interface Ticking {
  readonly response: HttpResponse
  sent: number
}

let probes = 0
const ticking = new Set<Ticking>()

/** One timer for all streams: a timer per stream would cost more than the streams. */
function tick(): void {
  for (const stream of ticking) {
    stream.sent++
    if (stream.sent <= SSE_CHUNKS) stream.response.cork(() => stream.response.write(SSE_CHUNK))
    else {
      ticking.delete(stream)
      stream.response.cork(() => stream.response.end(SSE_DONE))
    }
  }
}

function answerChat(response: HttpResponse, isStream: boolean): void {
  if (!isStream) {
    response.cork(() => response.writeHeader('content-type', 'application/json').end(JSON_REPLY))
    return
  }
  const stream: Ticking = { response, sent: 0 }
  response.onAborted(() => ticking.delete(stream))
  response.cork(() => {
    response.writeHeader('content-type', 'text/event-stream')
    stream.sent++
    response.write(SSE_CHUNK)
  })
  ticking.add(stream)
}

/** Writes as fast as the reader takes it, one write per cork. */
function answerBulk(response: HttpResponse): void {
  let index = 0
  let isGone = false
  const writeOne = () => {
    let taken = true
    response.cork(() => {
      if (index === 0) response.writeHeader('content-type', 'text/event-stream')
      taken = response.write(bulkEvent(index++))
    })
    return taken
  }
  const pump = () => {
    while (!isGone && index < BULK_EVENTS) {
      if (!writeOne()) return true
    }
    if (!isGone) response.cork(() => response.end())
    isGone = true
    return true
  }
  response.onAborted(() => {
    isGone = true
  })
  response.onWritable(pump)
  pump()
}

function readBody(response: HttpResponse, answer: (body: Buffer) => void): void {
  let body = Buffer.alloc(0)
  response.onAborted(() => {})
  response.onData((part, isLast) => {
    if (isLast && body.length === 0) answer(Buffer.from(part))
    else {
      body = Buffer.concat([body, Buffer.from(part)])
      if (isLast) answer(body)
    }
  })
}

function serveChat(response: HttpResponse, _request: HttpRequest): void {
  readBody(response, (body) => {
    // The load puts the mode in front, and the gateway behind, so that a long prompt is not searched.
    const start = body.toString('latin1', 0, 80) + body.toString('latin1', Math.max(80, body.length - 80))
    if (start.includes('"user":"bulk"')) answerBulk(response)
    else answerChat(response, start.includes('"stream":true'))
  })
}

function sendJson(value: unknown): (response: HttpResponse) => void {
  const text = JSON.stringify(value)
  return (response) => void response.writeHeader('content-type', 'application/json').end(text)
}

const app = App()
  .post('/v1/chat/completions', serveChat)
  .get('/health', (response) => {
    probes++
    response.end('ok')
  })
  .get('/probes', (response) => void response.end(String(probes)))
  .get(
    '/v1/models',
    sendJson({ object: 'list', data: [{ id: 'bench', object: 'model', owned_by: 'sglang' }] }),
  )
  .get('/server_info', sendJson({ version: '0', model_path: 'bench' }))
  .get('/model_info', sendJson({ model_path: 'bench', is_generation: true }))
  .any('/*', (response) => void response.writeStatus('404 Not Found').end('{}'))

const ports = Array.from({ length: Number(values.count) }, () => {
  let port = 0
  app.listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('the simulated worker cannot listen')
    port = us_socket_local_port(socket)
  })
  return port
})
setInterval(tick, 1)
announceReady({ port: ports[0], ports })
