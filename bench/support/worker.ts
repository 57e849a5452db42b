/**
 * The worker behind every subject. It replaces `plugins/sim` because it must cost less CPU than the gateway in front of
 * it: a chat completion takes about 0.6 of the CPU of `weir sim` with `fixedResponse`, and each chunk is one write.
 * `--count` sets the number of ports; each is a separate worker.
 */
import { App, type HttpRequest, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { BULK_EVENTS, bulkChunk, bulkEvent } from './bulk-stream.ts'
import { discoveryResponses } from './discovery-responses.ts'
import { announceReady } from './process.ts'
import {
  MESSAGE_CHUNK,
  MESSAGE_END,
  MESSAGE_START,
  RESPONSE_CHUNKS,
  RESPONSE_END,
  RESPONSE_START,
  SSE_CHUNK,
  SSE_CHUNKS,
  SSE_DONE,
} from './sse-workload.ts'

const { values } = parseArgs({ options: { count: { type: 'string', default: '1' } } })
/** At both ends of a chat's body. */
const SEARCHED_BYTES = 320
/** Larger message bodies are answered with their hash. */
const LARGE_BYTES = 1_048_576
const CHAT_RESPONSE = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'bench',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine, thank you.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 },
})

/** Response to a request with tools and without tool results. */
const TOOL_RESPONSE = JSON.stringify({
  ...JSON.parse(CHAT_RESPONSE),
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
/** Largest body that is searched for tools, in bytes. */
const MAX_TOOL_BODY = 8_192

function needsToolCall(body: Buffer): boolean {
  return body.length < MAX_TOOL_BODY && body.includes('"tools":') && !body.includes('"role":"tool"')
}

/** A stream that gets one chunk per tick. */
interface Ticking {
  readonly response: HttpResponse
  /** By the number of chunks before it. */
  readonly chunks: readonly string[]
  readonly end: string
  sent: number
}

const CHAT_CHUNKS: readonly string[] = Array(SSE_CHUNKS).fill(SSE_CHUNK)
const MESSAGE_CHUNKS: readonly string[] = Array(SSE_CHUNKS).fill(MESSAGE_CHUNK)

let probes = 0
const ticking = new Set<Ticking>()

/** One timer for all streams: a timer per stream would cost more than the streams. */
function tick(): void {
  for (const stream of ticking) {
    const chunk = stream.chunks[stream.sent++]
    if (chunk !== undefined) stream.response.cork(() => stream.response.write(chunk))
    else {
      ticking.delete(stream)
      stream.response.cork(() => stream.response.end(stream.end))
    }
  }
}

function sendText(response: HttpResponse, text: string): void {
  response.cork(() => response.writeHeader('content-type', 'application/json').end(text))
}

function sendChat(response: HttpResponse, isStream: boolean): void {
  if (!isStream) {
    sendText(response, CHAT_RESPONSE)
    return
  }
  startTicking(response, SSE_CHUNK, { chunks: CHAT_CHUNKS, end: SSE_DONE, sent: 1 })
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
    else if (body.toString('latin1', 0, 80).includes('"user":"bulk"')) sendBulk(response)
    else startTicking(response, MESSAGE_START, { chunks: MESSAGE_CHUNKS, end: MESSAGE_END, sent: 0 })
  })
}

/** Sends the hash of a body, for comparison with the sent one. */
function sendHash(response: HttpResponse, body: Buffer): void {
  const sha256 = createHash('sha256').update(body).digest('hex')
  response.cork(() =>
    response.writeHeader('content-type', 'application/json').end(JSON.stringify({ sha256 })),
  )
}

/** Writes as fast as the client reads, one write per cork. */
function sendBulk(response: HttpResponse, eventAt: (index: number) => Buffer = bulkEvent, end = ''): void {
  let index = 0
  let isClosed = false
  const writeOne = () => {
    let isWritable = true
    response.cork(() => {
      if (index === 0) response.writeHeader('content-type', 'text/event-stream')
      isWritable = response.write(eventAt(index++))
    })
    return isWritable
  }
  const pump = () => {
    while (!isClosed && index < BULK_EVENTS) {
      if (!writeOne()) return true
    }
    if (!isClosed) response.cork(() => response.end(end))
    isClosed = true
    return true
  }
  response.onAborted(() => {
    isClosed = true
  })
  response.onWritable(pump)
  pump()
}

function readBody(response: HttpResponse, onBody: (body: Buffer) => void): void {
  const parts: Buffer[] = []
  response.onAborted(() => {})
  response.onData((part, isLast) => {
    if (isLast && parts.length === 0) onBody(Buffer.from(part))
    else {
      // The library reuses the memory after this call.
      parts.push(Buffer.from(new Uint8Array(part)))
      if (isLast) onBody(Buffer.concat(parts))
    }
  })
}

function serveChat(response: HttpResponse, _request: HttpRequest): void {
  readBody(response, (body) => {
    // Load clients put the mode at the start of the body, behind what a gateway adds; one that encodes it again anywhere in a
    // short body, or at the end.
    const start = body.toString('latin1', 0, SEARCHED_BYTES)
    const end = body.toString('latin1', Math.max(0, body.length - SEARCHED_BYTES))
    if (start.includes('"user":"bulk"')) sendBulk(response)
    else if (start.includes('"user":"bulk-text"') || end.includes('"user":"bulk-text"'))
      sendBulk(response, bulkChunk, SSE_DONE)
    else if (needsToolCall(body)) sendText(response, TOOL_RESPONSE)
    else sendChat(response, start.includes('"stream":true') || end.includes('"stream":true'))
  })
}

const app = App()
for (const [path, body] of Object.entries(discoveryResponses('bench'))) {
  const text = JSON.stringify(body)
  app.get(path, (response) => {
    if (path === '/health') probes++
    response.writeHeader('content-type', 'application/json').end(text)
  })
}
app
  .post('/v1/chat/completions', serveChat)
  .post('/v1/messages', serveMessages)
  .post('/v1/responses', (response) =>
    readBody(response, (body) => {
      if (body.includes('"stream":true'))
        startTicking(response, RESPONSE_START, { chunks: RESPONSE_CHUNKS, end: RESPONSE_END, sent: 0 })
      // A trial at the registration must not find the route: only workers whose format is configured get responses.
      else response.writeStatus('404 Not Found').end('{}')
    }),
  )
  .get('/probes', (response) => void response.end(String(probes)))
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
