/** Connections that leave HTTP: WebSockets, and requests that offer another protocol which nobody takes up. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { legacyErrors } from './errors.ts'
import { answerHeaders, type ForwardedHead } from './forwarded-head.ts'
import type { Inner } from './inner.ts'
import { refuseRaw } from './refusal.ts'

/** @param first bytes that came behind the head */
export function openTunnel(
  request: IncomingMessage,
  socket: Duplex,
  first: Buffer,
  head: ForwardedHead,
  inner: Inner,
): void {
  if (request.headers.upgrade?.toLowerCase() === 'websocket') openWebSocket(socket, first, head, inner)
  else passOver(socket, first, head, inner)
}

function openWebSocket(socket: Duplex, first: Buffer, head: ForwardedHead, inner: Inner): void {
  const headers = [...head.headers, 'connection', 'Upgrade', 'upgrade', 'websocket']
  const request = inner.request(head.method, head.path, headers, false)
  socket.on('error', () => request.destroy())
  socket.on('close', () => request.destroy())
  request.on('error', () => refuseRaw(socket, legacyErrors.listener_broke_off()))
  request.on('upgrade', (reply, other, early) => {
    const upgraded = ['connection', 'Upgrade', 'upgrade', 'websocket']
    socket.write(headText(reply, [...answerHeaders(reply.rawHeaders), ...upgraded]), 'latin1')
    socket.write(early)
    other.write(first)
    join(socket, other)
  })
  request.on('response', (reply) => {
    // The end of the connection frames it.
    const kept = answerHeaders(reply.rawHeaders)
    socket.write(headText(reply, [...kept, 'connection', 'close']), 'latin1')
    reply.pipe(socket)
    reply.on('error', () => socket.destroy())
    reply.on('close', () => {
      if (!reply.complete) socket.destroy()
    })
  })
  request.end()
}

/** The offer is left out; the body behind the head is framed as it came, so that its bytes pass as they are. */
function passOver(socket: Duplex, first: Buffer, head: ForwardedHead, inner: Inner): void {
  const other = inner.connect()
  const lines = [`${head.method} ${head.path} HTTP/1.1`]
  const headers = [...head.headers, 'connection', 'close']
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  other.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  other.write(first)
  join(socket, other)
}

function join(one: Duplex, other: Duplex): void {
  one.pipe(other)
  other.pipe(one)
  for (const [from, to] of [
    [one, other],
    [other, one],
  ]) {
    from.on('error', () => to.destroy())
    // After an end in order the other side gets what is still on its way.
    from.on('close', () => {
      if (!from.readableEnded) to.destroy()
    })
  }
}

function headText(reply: IncomingMessage, headers: readonly string[]): string {
  const lines = [`HTTP/1.1 ${reply.statusCode} ${reply.statusMessage}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
