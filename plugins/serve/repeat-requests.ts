/** A load client that is cheap enough to share its thread with the gateway that it calls. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const CONNECTIONS = 8
/** A gateway that does not answer must not keep the thread from becoming ready. */
const IDLE_LIMIT_MS = 10_000
const LAST_CHUNK = '\r\n0\r\n\r\n'

/**
 * Sends the requests in turn over a few connections.
 * @throws Error if a connection is lost, or for a request that was never answered with 200
 */
export async function repeatRequests(
  port: number,
  requests: readonly (readonly [path: string, body: object])[],
  lengthMs: number,
  idleLimitMs = IDLE_LIMIT_MS,
): Promise<void> {
  const texts = requests.map(([path, body]) => requestText(path, JSON.stringify(body)))
  const endsAtMs = performance.now() + lengthMs
  const failures = new Map(texts.map((_, at) => [at, 'not sent']))
  let next = 0
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1')
      // With an error: without one, the wait for the connection would never end.
      socket.setTimeout(idleLimitMs, () => socket.destroy(new Error('no response to a warm-up request')))
      // `exchange` reports the close that follows.
      socket.on('error', () => {})
      try {
        await once(socket, 'connect')
        do {
          const at = next++ % texts.length
          const response = await exchange(socket, texts[at])
          if (response.startsWith('HTTP/1.1 200')) failures.delete(at)
          else if (failures.has(at)) failures.set(at, response)
        } while (performance.now() < endsAtMs)
      } finally {
        socket.destroy()
      }
    }),
  )
  for (const [at, response] of failures) throw new Error(`${requests[at][0]} failed: ${response}`)
}

function requestText(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** Resolves with the whole response. */
function exchange(socket: Socket, request: string): Promise<string> {
  const done = Promise.withResolvers<string>()
  let text = ''
  const onData = (part: string) => {
    text += part
    if (isWhole(text)) done.resolve(text)
  }
  const onClose = () => done.reject(new Error('the connection of a warm-up request was closed'))
  socket.on('data', onData).on('close', onClose)
  socket.write(request)
  return done.promise.finally(() => socket.off('data', onData).off('close', onClose))
}

function isWhole(response: string): boolean {
  const head = response.indexOf('\r\n\r\n')
  if (head < 0) return false
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(response.slice(0, head + 2)) ?? []
  return length === undefined ? response.endsWith(LAST_CHUNK) : response.length >= head + 4 + Number(length)
}
