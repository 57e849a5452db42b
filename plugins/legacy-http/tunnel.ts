/** Connections that leave HTTP: WebSockets, and requests that offer another protocol which nobody takes up. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { legacyErrors } from './errors.ts'
import { answerHeaders, type ForwardedHead } from './forwarded-head.ts'
import type { Inner } from './inner.ts'
import { refuseRaw } from './refusal.ts'

export function isWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'websocket'
}

/** @param first bytes that came behind the head: they wait for the other protocol */
export function openWebSocket(socket: Duplex, first: Buffer, head: ForwardedHead, inner: Inner): void {
  const request = ask(socket, head, ['connection', 'Upgrade', 'upgrade', 'websocket'], inner)
  request.on('upgrade', (reply, other, early) => {
    const upgraded = ['connection', 'Upgrade', 'upgrade', 'websocket']
    socket.write(headText(reply, [...answerHeaders(reply.rawHeaders), ...upgraded]), 'latin1')
    socket.write(early)
    other.write(first)
    join(socket, other)
  })
  request.end()
}

/**
 * The offer is left out. Of what comes behind the head the announced body alone is handed on: the rest would reach the
 * gateway as requests that nobody here has looked at. @param first bytes that came with the head
 */
export function passOver(socket: Duplex, first: Buffer, head: ForwardedHead, inner: Inner): void {
  if (head.isChunked) {
    const problem = 'a chunked body and an offer of another protocol exclude each other'
    refuseRaw(socket, legacyErrors.bad_framing(problem))
    return
  }
  const request = ask(socket, head, ['connection', 'close'], inner)
  let left = head.contentLength ?? 0
  const take = (bytes: Buffer) => {
    if (request.writableEnded) return
    const part = bytes.subarray(0, left)
    left -= part.length
    if (left === 0) request.end(part)
    else if (!request.write(part)) {
      socket.pause()
      request.once('drain', () => socket.resume())
    }
  }
  socket.on('data', take)
  socket.on('end', () => socket.destroy())
  take(first)
}

/** Hands the head on; an answer that stays with HTTP is the last of its connection, whose end frames it. */
function ask(
  socket: Duplex,
  head: ForwardedHead,
  connection: readonly string[],
  inner: Inner,
): ClientRequest {
  const request = inner.request(head.method, head.path, [...head.headers, ...connection], false)
  socket.on('error', () => request.destroy())
  socket.on('close', () => request.destroy())
  let isAnswered = false
  request.on('error', () => {
    if (!isAnswered) refuseRaw(socket, legacyErrors.listener_broke_off())
  })
  request.on('response', (reply) => {
    isAnswered = true
    const kept = answerHeaders(reply.rawHeaders)
    socket.write(headText(reply, [...kept, 'connection', 'close']), 'latin1')
    reply.pipe(socket).once('finish', () => socket.destroy())
    reply.on('error', () => socket.destroy())
    reply.on('close', () => {
      if (!reply.complete) socket.destroy()
    })
  })
  return request
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
