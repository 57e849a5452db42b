/**
 * A worker for thousands of streams at the pace of a model: each delta says its number and when it was sent, on the clock
 * that all processes of a machine share. Streams are spread over the pace, so that they do not speak all at once.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { announceReady } from './process.ts'
import { MESSAGE_CHUNK, MESSAGE_END, MESSAGE_START, SSE_CHUNK, SSE_DONE } from './sse-workload.ts'
import { DELTAS, nowMicros, PACE_MS, stamp } from './stamped-deltas.ts'

interface Paced {
  readonly response: HttpResponse
  /** What stands before and behind the text of a delta. */
  readonly frame: readonly [before: string, behind: string]
  readonly end: string
  sent: number
}

const around = (chunk: string) => chunk.split(' token') as [string, string]
const CHAT_FRAME = around(SSE_CHUNK)
const MESSAGE_FRAME = around(MESSAGE_CHUNK)

/** Streams by the millisecond of the pace in which they speak. */
const places = Array.from({ length: PACE_MS }, () => new Set<Paced>())
let place = 0
let ticks = 0
const startedAtMs = performance.now()

function tick(): void {
  // A timer that comes late makes up for it, so that the pace holds.
  for (const due = Math.floor(performance.now() - startedAtMs); ticks < due; ticks++) {
    place = (place + 1) % PACE_MS
    for (const stream of places[place]) sendNext(stream, places[place])
  }
}

function sendNext(stream: Paced, streams: Set<Paced>): void {
  const { response, frame, end } = stream
  if (stream.sent < DELTAS) {
    const event = frame[0] + stamp(stream.sent++, nowMicros()) + frame[1]
    response.cork(() => response.write(event))
  } else {
    streams.delete(stream)
    response.cork(() => response.end(end))
  }
}

/** @param start written with the head */
function startStream(response: HttpResponse, start: string, rest: Pick<Paced, 'frame' | 'end'>): void {
  const streams = places[place]
  const stream: Paced = { response, ...rest, sent: 0 }
  response.onAborted(() => streams.delete(stream))
  response.onData((_part, isLast) => {
    if (!isLast) return
    response.cork(() => {
      response.writeHeader('content-type', 'text/event-stream')
      response.write(start)
    })
    streams.add(stream)
  })
}

const sendJson = (value: unknown) => (response: HttpResponse) =>
  void response.writeHeader('content-type', 'application/json').end(JSON.stringify(value))

App()
  .post('/v1/chat/completions', (response) => {
    const start = SSE_CHUNK.replace('{"content":" token"}', '{"role":"assistant","content":""}')
    startStream(response, start, { frame: CHAT_FRAME, end: SSE_DONE })
  })
  .post('/v1/messages', (response) => {
    startStream(response, MESSAGE_START, { frame: MESSAGE_FRAME, end: MESSAGE_END })
  })
  .get('/health', (response) => void response.end('ok'))
  .get(
    '/v1/models',
    sendJson({ object: 'list', data: [{ id: 'bench', object: 'model', owned_by: 'sglang' }] }),
  )
  .get('/server_info', sendJson({ version: '0', model_path: 'bench' }))
  .get('/model_info', sendJson({ model_path: 'bench', is_generation: true }))
  .any('/*', (response) => void response.writeStatus('404 Not Found').end('{}'))
  .listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('the stamped worker cannot listen')
    announceReady({ port: us_socket_local_port(socket) })
  })
setInterval(tick, 1)
