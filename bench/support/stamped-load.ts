/**
 * Load client for many concurrent streams, one per connection. Measures the age of each delta on arrival and checks that
 * every stream has all deltas in order.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { build } from 'hdr-histogram-js'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'
import { announceReady, wait } from './process.ts'
import { chatBody, messageBody, requestBytes } from './request-bytes.ts'
import { DELTAS, nowMicros, PACE_MS, STAMP } from './stamped-deltas.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    streams: { type: 'string', default: '1000' },
    // 1: requests messages instead of chat completions.
    messages: { type: 'string', default: '0' },
  },
})
const port = Number(values.port)
const count = Number(values.streams)
const request =
  values.messages === '1'
    ? requestBytes(port, messageBody(250), { path: '/v1/messages' })
    : requestBytes(port, chatBody({ stream: true, bodyBytes: 250 }))
/** Streams that start per millisecond, so that they are spread evenly over the interval. */
const STARTS_PER_MS = Math.ceil(count / PACE_MS / 10)

const ages = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 })
const cpuAtStart = process.cpuUsage()
const startedAtMs = performance.now()
let deltas = 0
let disordered = 0
let failures = 0
let open = 0
let mostOpen = 0
let ended = 0

class Stream {
  readonly #socket: Socket
  readonly #decoder = new ChunkedDecoder((part) => this.#takeBody(part))
  #hasHead = false
  #rest = ''
  #next = 0

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', () => failures++)
    socket.on('close', () => this.#end())
  }

  start(): void {
    this.#socket.write(request)
  }

  #take(bytes: Buffer): void {
    if (this.#hasHead) this.#decoder.push(bytes)
    else {
      const end = bytes.indexOf('\r\n\r\n')
      if (!bytes.toString('latin1', 0, 12).endsWith(' 200'))
        throw new Error(`not a stream: ${bytes.toString('latin1', 0, 300)}`)
      this.#hasHead = true
      mostOpen = Math.max(mostOpen, ++open)
      this.#decoder.push(bytes.subarray(end + 4))
    }
    if (this.#decoder.isDone) this.#socket.destroy()
  }

  #takeBody(part: Buffer): void {
    const nowAtMicros = nowMicros()
    const events = (this.#rest + part.toString('latin1')).split('\n\n')
    this.#rest = events.pop() ?? ''
    for (const event of events) {
      const found = STAMP.exec(event)
      if (found === null) continue
      if (Number(found[1]) !== this.#next++) disordered++
      ages.recordValue(Math.max(1, nowAtMicros - Number(found[2])))
      deltas++
    }
  }

  #end(): void {
    open--
    if (this.#next !== DELTAS || this.#rest !== '') failures++
    if (++ended === count) finish()
  }
}

function finish(): void {
  const cpu = process.cpuUsage(cpuAtStart)
  announceReady({
    deltas,
    disordered,
    failures,
    mostOpen,
    p50Micros: ages.getValueAtPercentile(50),
    p99Micros: ages.getValueAtPercentile(99),
    clientCore: (cpu.user + cpu.system) / 1_000 / (performance.now() - startedAtMs),
  })
  process.exit(0)
}

const streams: Stream[] = []
for (let index = 0; index < count; index++) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  streams.push(new Stream(socket))
}
for (const [index, stream] of streams.entries()) {
  if (index % STARTS_PER_MS === 0) await wait(1)
  stream.start()
}
