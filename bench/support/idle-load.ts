/** Load client that opens many streams and reports once each had its first event. */
import { connect } from 'node:net'
import { parseArgs } from 'node:util'
import { announceReady } from './process.ts'
import { chatBody, requestBytes } from './request-bytes.ts'

const { values } = parseArgs({
  options: { port: { type: 'string', default: '0' }, streams: { type: 'string', default: '100' } },
})
const port = Number(values.port)
const total = Number(values.streams)
/** Connections that wait for their first event; more would overflow the accept queue. */
const WINDOW = 128
const request = requestBytes(port, chatBody({ stream: true, bodyBytes: 250 }))
let opened = 0
let started = 0
let lost = 0

function openOne(): void {
  started++
  const socket = connect(port, '127.0.0.1')
  let hasEvent = false
  socket.write(request)
  socket.on('data', (bytes) => {
    if (hasEvent) return
    if (bytes.indexOf('data: ') < 0) {
      if (!bytes.toString('latin1', 0, 12).endsWith(' 200'))
        throw new Error(`not a stream: ${bytes.toString('latin1')}`)
      return
    }
    hasEvent = true
    opened++
    if (opened === total) announceReady({ opened })
    else if (started < total) openOne()
  })
  socket.on('error', () => {})
  socket.on('close', () => lost++)
}

process.on('SIGTERM', () => process.exit(0))
// The parent requests the number of streams that were closed early.
process.on('SIGUSR2', () => announceReady({ lost }))
for (let index = 0; index < Math.min(WINDOW, total); index++) openOne()
