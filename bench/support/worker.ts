/**
 * The worker behind every subject of a benchmark, run as a process of its own. The one exception to plugins/sim as the
 * simulated engine: it must cost less than the gateway in front of it. For a chat completion it takes about 0.6 of the CPU
 * of `weir sim` with `fixedReply`, and each chunk of its streams is one write. With `--count` it listens on that many
 * ports, each a separate worker.
 */

import { App, type HttpRequest, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { BULK_EVENTS, bulkChunk, bulkEvent } from './bulk-stream.ts'
import { announceReady } from './process.ts'
import { MESSAGE_CHUNK, MESSAGE_END, MESSAGE_START, SSE_CHUNK, SSE_CHUNKS, SSE_DONE } from './sse-workload.ts'

const { values } = parseArgs({ options: { count: { type: 'string', default: '1' } } })
/** Bodies of messages beyond this are answered with their hash. */
const LARGE_BYTES = 1_048_576
const JSON_REPLY = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine, thank you.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 },
})

/** Of a model that was given tools and has used none yet. */
const TOOL_REPLY = JSON.stringify({
  ...JSON.parse(JSON_REPLY),
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{}' } }],
      },
      finish_reason: 'tool_calls',
    },
  ],
})
/** Bodies up to here are searched for tools, bytes. */
const MAX_TOOL_BODY = 8_192

function asksForTool(body: Buffer): boolean {
  return body.length < MAX_TOOL_BODY && body.includes('"tools":') && !body.includes('"role":"tool"')
}

/** A chunked stream that is given one chunk per tick. */
interface Ticking {
  readonly response: HttpResponse
  readonly chunk: string
  readonly end: string
  sent: number
}

let probes = 0
const ticking = new Set<Ticking>()

/** One timer for all streams: a timer per stream would cost more than the streams. */
function tick(): void {
  for (const stream of ticking) {
    stream.sent++
    if (stream.sent <= SSE_CHUNKS) stream.response.cork(() => stream.response.write(stream.chunk))
    else {
      ticking.delete(stream)
      stream.response.cork(() => stream.response.end(stream.end))
    }
  }
}

function sendText(response: HttpResponse, text: string): void {
  response.cork(() => response.writeHeader('content-type', 'application/json').end(text))
}

function answerChat(response: HttpResponse, isStream: boolean): void {
  if (!isStream) {
    sendText(response, JSON_REPLY)
    return
  }
  startTicking(response, SSE_CHUNK, { chunk: SSE_CHUNK, end: SSE_DONE, sent: 1 })
}

/** @param first written with the head */
function startTicking(response: HttpResponse, first: string, rest: Omit<Ticking, 'response'>): void {
  const stream: Ticking = { response, ...rest }
  response.onAborted(() => ticking.delete(stream))
  response.cork(() => {
    response.writeHeader('content-type', 'text/event-stream')
    response.write(first)
  })
  ticking.add(stream)
}

function serveMessages(response: HttpResponse): void {
  readBody(response, (body) => {
    if (body.length > LARGE_BYTES) sendHash(response, body)
    else if (body.toString('latin1', 0, 80).includes('"user":"bulk"')) answerBulk(response)
    else startTicking(response, MESSAGE_START, { chunk: MESSAGE_CHUNK, end: MESSAGE_END, sent: 0 })
  })
}

/** Says what has arrived of a body that is too large to be sent back. */
function sendHash(response: HttpResponse, body: Buffer): void {
  const sha256 = createHash('sha256').update(body).digest('hex')
  response.cork(() =>
    response.writeHeader('content-type', 'application/json').end(JSON.stringify({ sha256 })),
  )
}

/** Writes as fast as the reader takes it, one write per cork. */
function answerBulk(response: HttpResponse, eventAt: (index: number) => Buffer = bulkEvent, end = ''): void {
  let index = 0
  let isGone = false
  const writeOne = () => {
    let taken = true
    response.cork(() => {
      if (index === 0) response.writeHeader('content-type', 'text/event-stream')
      taken = response.write(eventAt(index++))
    })
    return taken
  }
  const pump = () => {
    while (!isGone && index < BULK_EVENTS) {
      if (!writeOne()) return true
    }
    if (!isGone) response.cork(() => response.end(end))
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
  const parts: Buffer[] = []
  response.onAborted(() => {})
  response.onData((part, isLast) => {
    if (isLast && parts.length === 0) answer(Buffer.from(part))
    else {
      // The library takes the memory back after this call.
      parts.push(Buffer.from(new Uint8Array(part)))
      if (isLast) answer(Buffer.concat(parts))
    }
  })
}

function serveChat(response: HttpResponse, _request: HttpRequest): void {
  readBody(response, (body) => {
    // The load puts the mode in front, a gateway that writes the body anew at its end: a long prompt is not searched.
    const start = body.toString('latin1', 0, 80)
    const end = body.toString('latin1', Math.max(0, body.length - 80))
    if (start.includes('"user":"bulk"')) answerBulk(response)
    else if (start.includes('"user":"bulk-text"') || end.includes('"user":"bulk-text"'))
      answerBulk(response, bulkChunk, SSE_DONE)
    else if (asksForTool(body)) sendText(response, TOOL_REPLY)
    else answerChat(response, start.includes('"stream":true') || end.includes('"stream":true'))
  })
}

function sendJson(value: unknown): (response: HttpResponse) => void {
  const text = JSON.stringify(value)
  return (response) => void response.writeHeader('content-type', 'application/json').end(text)
}

const app = App()
  .post('/v1/chat/completions', serveChat)
  .post('/v1/messages', serveMessages)
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
