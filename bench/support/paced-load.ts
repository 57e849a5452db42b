/**
 * Load client at a fixed rate. Requests are due at even intervals (autocannon sends a burst at the start of each second),
 * and the latency of a delayed request counts from its due time. Rate 0 keeps every connection busy.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { build } from 'hdr-histogram-js'
import { announceReady } from './process.ts'
import { chatBody, requestBytes, tenantKeys } from './request-bytes.ts'
import { BENCH_KEY } from './subject.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    connections: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '4' },
    bytes: { type: 'string', default: '250' },
    rate: { type: 'string', default: '0' },
    // Requests use their keys in turn; 0: all use the shared key.
    tenants: { type: 'string', default: '0' },
  },
})
const port = Number(values.port)
const ratePerMs = Number(values.rate) / 1_000
const body = chatBody({ stream: false, bodyBytes: Number(values.bytes) })
const keys = values.tenants === '0' ? [BENCH_KEY] : tenantKeys(Number(values.tenants))
const requests = keys.map((key) => requestBytes(port, body, { key }))
let sent = 0
const histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 })
const free: Connection[] = []
const overdue: number[] = []
let completed = 0
let failures = 0
let isOver = false

/** One keep-alive connection with at most one request on it. */
class Connection {
  readonly #socket: Socket
  #sentAtMs = 0
  #left = -1

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', () => failures++)
  }

  send(dueAtMs: number): void {
    this.#sentAtMs = dueAtMs
    this.#socket.write(requests[sent++ % requests.length])
  }

  #take(bytes: Buffer): void {
    if (this.#left < 0) {
      const end = bytes.indexOf('\r\n\r\n')
      const head = bytes.toString('latin1', 0, end).toLowerCase()
      const at = head.indexOf('content-length:')
      if (end < 0 || at < 0)
        throw new Error(`not a response with content-length: ${bytes.toString('latin1', 0, 200)}`)
      if (!head.startsWith('http/1.1 200')) failures++
      this.#left = Number.parseInt(head.slice(at + 15), 10) - (bytes.length - end - 4)
    } else this.#left -= bytes.length
    if (this.#left > 0) return
    this.#left = -1
    completed++
    histogram.recordValue(Math.max(1, Math.round((performance.now() - this.#sentAtMs) * 1_000)))
    this.#next()
  }

  #next(): void {
    if (isOver) this.#socket.destroy()
    else if (ratePerMs === 0) this.send(performance.now())
    else {
      const dueAtMs = overdue.shift()
      if (dueAtMs === undefined) free.push(this)
      else this.send(dueAtMs)
    }
  }
}

for (let index = 0; index < Number(values.connections); index++) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  free.push(new Connection(socket))
}
const startedAtMs = performance.now()
const cpuAtStart = process.cpuUsage()
let issued = 0
if (ratePerMs === 0) for (const connection of free.splice(0)) connection.send(startedAtMs)
const pace = setInterval(() => {
  const nowMs = performance.now()
  const due = Math.floor((nowMs - startedAtMs) * ratePerMs)
  for (; issued < due; issued++) {
    const connection = free.pop()
    if (connection === undefined) overdue.push(nowMs)
    else connection.send(nowMs)
  }
}, 1)

setTimeout(() => {
  isOver = true
  clearInterval(pace)
  const elapsedMs = performance.now() - startedAtMs
  const cpu = process.cpuUsage(cpuAtStart)
  announceReady({
    requests: completed,
    failures,
    perSecond: (completed / elapsedMs) * 1_000,
    p50Micros: histogram.getValueAtPercentile(50),
    p99Micros: histogram.getValueAtPercentile(99),
    clientCore: (cpu.user + cpu.system) / 1_000 / elapsedMs,
  })
  process.exit(0)
}, Number(values.seconds) * 1_000)
