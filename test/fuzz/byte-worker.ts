/** A worker that writes raw bytes as its responses. */
import { createServer, type Server } from 'node:net'

export interface ByteWorker {
  readonly url: string
  close(): void
}

export const WELL_CHAT = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
}

export function wholeResponse(body: string, type = 'application/json', status = '200 OK'): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

const WELL = wholeResponse(JSON.stringify(WELL_CHAT))

/** @param respond parts of the response, after which the connection is closed; null for the usual chat response */
export async function startByteWorker(
  respond: (head: string, body: string) => readonly Buffer[] | null = () => null,
): Promise<ByteWorker> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.setEncoding('latin1')
    let held = ''
    socket.on('data', (text: string) => {
      held += text
      const end = held.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(held.slice(0, end))?.[1] ?? 0)
      if (held.length < end + 4 + length) return
      const parts = respond(held.slice(0, end), held.slice(end + 4))
      held = ''
      if (parts === null) socket.write(WELL)
      else writeParts(parts)
    })
    const writeParts = ([part, ...rest]: readonly Buffer[]) => {
      if (part === undefined) socket.end()
      else socket.write(part, () => setImmediate(writeParts, rest))
    }
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}
