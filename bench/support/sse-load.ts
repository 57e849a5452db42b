/**
 * Load client for event streams over plain sockets: time to first event, gaps between events, number of events, and
 * whether each stream has the content that the worker sent.
 */
import { createHash, type Hash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { build } from 'hdr-histogram-js'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'
import { ANSWER_KINDS, type AnswerKind, isSameAnswer, TOOLS } from './grpc-workload.ts'
import { announceReady } from './process.ts'
import { chatBody, messageBody, requestBytes, responsesBody } from './request-bytes.ts'
import { isSameMessage, isSameResponse, isSameText, messagesSha256, sseSha256 } from './sse-workload.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    streams: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '4' },
    // 1: compares the bytes of each stream; 0: compares the text of its deltas.
    exact: { type: 'string', default: '1' },
    // 1: requests responses instead of chat completions.
    responses: { type: 'string', default: '0' },
    // 1: requests messages instead of chat completions.
    messages: { type: 'string', default: '0' },
    // Expected output of the gRPC engine: index in ANSWER_KINDS plus 1; 0 for the HTTP worker.
    engine: { type: 'string', default: '0' },
  },
})
const port = Number(values.port)
const isResponses = values.responses === '1'
const isMessages = values.messages !== '0'
const PLAIN_CHAT = { stream: true, bodyBytes: 250 }
const request = isResponses
  ? requestBytes(port, responsesBody({ stream: true, store: true, bodyBytes: 250 }), {
      path: '/v1/responses',
    })
  : isMessages
    ? requestBytes(port, messageBody(250), { path: '/v1/messages' })
    : requestBytes(
        port,
        chatBody(values.engine === '2' ? { ...PLAIN_CHAT, bodyBytes: 700, tools: TOOLS } : PLAIN_CHAT),
      )
const kind: AnswerKind = ANSWER_KINDS[Number(values.engine) - 1] ?? 'plain'
const isSameChat = values.engine === '0' ? isSameText : (stream: Buffer) => isSameAnswer(kind, stream)
const isSame = isResponses ? isSameResponse : isMessages ? isSameMessage : isSameChat
const expected = isMessages ? messagesSha256() : sseSha256()
const isExact = values.exact !== '0'
const firstEvents = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 })
const gaps = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 })
let events = 0
let streams = 0
let failures = 0
let splitReads = 0
let isOver = false
let open = 0

interface BodyDecoder {
  readonly isDone: boolean
  push(bytes: Buffer): void
}

class LengthDecoder implements BodyDecoder {
  #left: number
  readonly #onBody: (part: Buffer) => void

  constructor(length: number, onBody: (part: Buffer) => void) {
    this.#left = length
    this.#onBody = onBody
  }

  get isDone(): boolean {
    return this.#left === 0
  }

  push(bytes: Buffer): void {
    this.#left -= bytes.length
    this.#onBody(bytes)
  }
}

/** A keep-alive connection with one stream after another. */
class StreamLoop {
  readonly #socket: Socket
  #decoder: BodyDecoder | null = null
  #hash: Hash = createHash('sha256')
  #previousAtMs = 0
  #hasEvent = false
  #parts: Buffer[] = []

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', () => failures++)
    socket.on('close', () => {
      if (!isOver) failures++
      if (--open === 0) finish()
    })
    this.#start()
  }

  #start(): void {
    this.#decoder = null
    this.#hash = createHash('sha256')
    this.#parts = []
    this.#previousAtMs = performance.now()
    this.#hasEvent = false
    this.#socket.write(request)
  }

  #take(bytes: Buffer): void {
    if (this.#decoder === null) {
      const end = bytes.indexOf('\r\n\r\n')
      if (!bytes.toString('latin1', 0, 12).endsWith(' 200')) {
        throw new Error(`not a stream: ${bytes.toString('latin1', 0, 300)}`)
      }
      // On a busy machine a stream may be sent at once, with content-length.
      const length = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))
      const onBody = (part: Buffer) => this.#takeBody(part)
      this.#decoder =
        length === null ? new ChunkedDecoder(onBody) : new LengthDecoder(Number(length[1]), onBody)
      this.#push(bytes.subarray(end + 4), this.#decoder)
    } else this.#push(bytes, this.#decoder)
  }

  #push(bytes: Buffer, decoder: BodyDecoder): void {
    decoder.push(bytes)
    if (!decoder.isDone) return
    streams++
    if (isExact ? this.#hash.digest('hex') !== expected : !isSame(Buffer.concat(this.#parts))) failures++
    if (isOver) this.#socket.destroy()
    else this.#start()
  }

  #takeBody(part: Buffer): void {
    if (isExact) this.#hash.update(part)
    else this.#parts.push(Buffer.from(part))
    let found = 0
    for (let at = part.indexOf('\n\n'); at >= 0; at = part.indexOf('\n\n', at + 2)) found++
    if (part[part.length - 1] !== 10) splitReads++
    if (found === 0) return
    const nowMs = performance.now()
    const histogram = this.#hasEvent ? gaps : firstEvents
    histogram.recordValue(Math.max(1, Math.round((nowMs - this.#previousAtMs) * 1_000)))
    events += found
    this.#hasEvent = true
    this.#previousAtMs = nowMs
  }
}

const startedAtMs = performance.now()
const cpuAtStart = process.cpuUsage()

function finish(): void {
  const elapsedMs = performance.now() - startedAtMs
  const cpu = process.cpuUsage(cpuAtStart)
  announceReady({
    events,
    streams,
    failures,
    splitReads,
    eventsPerSecond: (events / elapsedMs) * 1_000,
    firstEventP50Micros: firstEvents.getValueAtPercentile(50),
    firstEventP99Micros: firstEvents.getValueAtPercentile(99),
    gapP50Micros: gaps.getValueAtPercentile(50),
    gapP99Micros: gaps.getValueAtPercentile(99),
    clientCore: (cpu.user + cpu.system) / 1_000 / elapsedMs,
  })
  process.exit(0)
}

open = Number(values.streams)
for (let index = 0; index < Number(values.streams); index++) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  new StreamLoop(socket)
}
// Open streams continue to their end, so that every counted stream is complete.
setTimeout(() => {
  isOver = true
}, Number(values.seconds) * 1_000)
