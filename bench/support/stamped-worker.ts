/**
 * A worker for thousands of streams at the rate of a model. Each delta contains its number and its send time on the
 * machine's monotonic clock. The streams are spread over the interval, so that their deltas are not sent at once.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { discoveryResponses } from './discovery-responses.ts'
import { announceReady } from './process.ts'
import { MESSAGE_CHUNK, MESSAGE_END, MESSAGE_START, SSE_CHUNK, SSE_DONE } from './sse-workload.ts'
import { DELTAS, nowMicros, PACE_MS, stamp } from './stamped-deltas.ts'

interface Paced {
  readonly response: HttpResponse
  /** Bytes of the event before and after the text of the delta. */
  readonly frame: readonly [before: string, after: string]
  readonly end: string
  sent: number
}

const around = (chunk: string) => chunk.split(' token') as [string, string]
const CHAT_FRAME = around(SSE_CHUNK)
const MESSAGE_FRAME = around(MESSAGE_CHUNK)

/** Streams by the millisecond of the interval in which they send. */
const places = Array.from({ length: PACE_MS }, () => new Set<Paced>())
let place = 0
let ticks = 0
const startedAtMs = performance.now()

function tick(): void {
  // A late timer sends the missed deltas too, so that the rate holds.
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

const app = App()
for (const [path, body] of Object.entries(discoveryResponses('bench')))
  app.get(path, (response) => {
    response.writeHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
app
  .post('/v1/chat/completions', (response) => {
    const start = SSE_CHUNK.replace('{"content":" token"}', '{"role":"assistant","content":""}')
    startStream(response, start, { frame: CHAT_FRAME, end: SSE_DONE })
  })
  .post('/v1/messages', (response) => {
    startStream(response, MESSAGE_START, { frame: MESSAGE_FRAME, end: MESSAGE_END })
  })
  .any('/*', (response) => void response.writeStatus('404 Not Found').end('{}'))
  .listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('the stamped worker cannot listen')
    announceReady({ port: us_socket_local_port(socket) })
  })
setInterval(tick, 1)
