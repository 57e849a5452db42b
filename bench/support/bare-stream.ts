/**
 * The lower bound of the cost of an event stream: uWebSockets.js writes the events of a file, one to every open stream at
 * each tick.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { announceReady } from './process.ts'
import { startTicks } from './tick-interval.ts'

const { values } = parseArgs({ options: { events: { type: 'string', default: '' } } })

/** Read at the first request; strings, as the gateway writes them. */
let events: readonly string[] | null = null
const running = new Map<HttpResponse, number>()

function begin(response: HttpResponse): void {
  events ??= readFileSync(values.events, 'utf8')
    .split(/(?<=\n\n)/)
    .filter((event) => event !== '')
  response.onAborted(() => running.delete(response))
  response.onData((_, isLast) => {
    if (isLast) running.set(response, 0)
  })
}

function tick(): void {
  const all = events ?? []
  for (const [response, at] of running) {
    running.set(response, at + 1)
    const isLast = at + 1 >= all.length
    if (isLast) running.delete(response)
    response.cork(() => {
      if (at === 0) response.writeStatus('200 OK').writeHeader('content-type', 'text/event-stream')
      if (isLast) response.end(all[at])
      else response.write(all[at])
    })
  }
}

App()
  .post('/*', begin)
  .listen('127.0.0.1', 0, (socket) => {
    startTicks(tick)
    announceReady({ port: us_socket_local_port(socket) })
  })
