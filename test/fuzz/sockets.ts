/** WebSocket frames for the Responses socket: headers, masks, lengths, fragments, UTF-8, close codes, JSON messages. */
import { connect, type Socket } from 'node:net'
import { startByteWorker } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { type Draw, generate, type Json, mutate, mutateJson, pickOf } from './mutate.ts'

const LANES = 8
const LIMIT_MS = 15_000
const HANDSHAKE =
  'GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
const PING = Buffer.from([0x89, 0x81, 0, 0, 0, 0, 0x7a])
const CREATE = { type: 'response.create', model: 'm', input: 'hi' }

export const sockets: Suite = { lanes: LANES, count: 1_000, start }

async function start(): Promise<Target> {
  const worker = await startByteWorker()
  const gateway = await startFuzzed({
    plugins: { responses: {}, openapi: {} },
    workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
  const document = (await (await gateway.get('/openapi.json')).json()) as Json
  return {
    gateway,
    make: (draw) => makeCase(document, draw),
    run: ({ parts }) => send(gateway.port, parts),
    close: () => worker.close(),
  }
}

function makeCase(document: Json, draw: Draw): FuzzCase {
  const frames = Array.from({ length: 1 + draw(4) }, () => makeFrame(document, draw))
  const bytes = Buffer.concat(frames)
  if (draw(4) === 0) return { label: 'mutated frames', parts: [mutate(bytes, [bytes], draw)] }
  return { label: 'frames', parts: frames }
}

function makeFrame(document: Json, draw: Draw): Buffer {
  if (draw(2) === 0) return frame(1, Buffer.from(makeMessage(document, draw)))
  const payload = pickOf(
    [
      Buffer.alloc(0),
      Buffer.from('{"type":'),
      Buffer.from([0xc3]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.alloc(126, 'a'),
      Buffer.alloc(70_000, 'b'),
      Buffer.from([0x03, 0xe8]),
      Buffer.from([0x03, 0xed]),
      Buffer.from([0xff]),
      Buffer.from([0, 0, 0xff]),
    ],
    draw,
  )
  const whole = frame(draw(16), payload, {
    isLast: draw(4) > 0,
    isMasked: draw(12) > 0,
    length:
      draw(6) === 0 ? pickOf([0, 1, 125, 126, 65_535, 2 ** 26 + 1, 2 ** 32, 2 ** 53], draw) : payload.length,
  })
  if (draw(10) === 0) whole[0] |= 0x10 << draw(3)
  return whole
}

function makeMessage(document: Json, draw: Draw): string {
  const { paths } = document as {
    paths: Record<string, { post: { requestBody: { content: Record<string, { schema: unknown }> } } }>
  }
  const { schema } = paths['/v1/responses'].post.requestBody.content['application/json']
  const made =
    draw(3) === 0 ? CREATE : { type: 'response.create', ...(generate(schema, document, draw) as object) }
  return JSON.stringify(draw(2) === 0 ? mutateJson(made, draw) : made) ?? ''
}

interface FrameOptions {
  readonly isLast?: boolean
  readonly isMasked?: boolean
  /** The one written in the header. */
  readonly length?: number
}

function frame(
  opcode: number,
  payload: Buffer,
  { isLast = true, isMasked = true, length = payload.length }: FrameOptions = {},
): Buffer {
  const head = Buffer.alloc(14)
  head[0] = (isLast ? 0x80 : 0) | opcode
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8
  head[1] = (isMasked ? 0x80 : 0) | (size === 0 ? length : size === 2 ? 126 : 127)
  if (size === 2) head.writeUInt16BE(length, 2)
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2)
  // A zero mask leaves the payload unchanged.
  return Buffer.concat([head.subarray(0, 2 + size + (isMasked ? 4 : 0)), payload])
}

/** True if the bytes end within a frame, so that a ping after them is part of its payload. */
function endsWithinFrame(bytes: Buffer): boolean {
  let at = 0
  while (at < bytes.length) {
    if (at + 2 > bytes.length) return true
    const small = bytes[at + 1] & 0x7f
    const size = small < 126 ? 0 : small === 126 ? 2 : 8
    if (at + 2 + size > bytes.length) return true
    const length =
      size === 0 ? small : size === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    // The server library reads a mask whatever the mask bit is.
    at += 2 + size + 4 + length
  }
  return at > bytes.length
}

/** After the frames a ping: a pong or the end of the connection must follow. */
function send(port: number, parts: readonly Buffer[]): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const isCut = endsWithinFrame(Buffer.concat(parts))
  let received = Buffer.alloc(0)
  const finish = (ending: string, fault?: string) => {
    clearTimeout(timer)
    socket.destroy()
    resolve({ ending, fault })
  }
  const timer = setTimeout(() => finish('silent', isCut ? undefined : 'silent'), isCut ? 300 : LIMIT_MS)
  let isOpen = false
  socket.on('connect', () => socket.write(HANDSHAKE))
  socket.on('error', () => {})
  socket.on('close', () => finish('closed'))
  socket.on('data', (data) => {
    received = Buffer.concat([received, data])
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd === -1) return
    if (!received.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101')))
      return finish('rejected', `handshake: ${received}`)
    if (!isOpen) socket.write(Buffer.concat([...parts, PING]))
    isOpen = true
    const { fault, last } = readFrames(received.subarray(headEnd + 4))
    if (fault !== undefined) finish('fault', fault)
    else if (last === 8) finish('close frame')
    else if (last === 10) finish('pong')
  })
  return promise
}

/** Text must be JSON with a type, and errors as documented. `last` is the opcode of the last complete close or pong frame. */
function readFrames(bytes: Buffer): { fault?: string; last: number } {
  let last = -1
  for (let at = 0; at + 2 <= bytes.length; ) {
    const small = bytes[at + 1] & 0x7f
    const size = small < 126 ? 0 : small === 126 ? 2 : 8
    if (at + 2 + size > bytes.length) break
    const length =
      size === 0 ? small : size === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    const start = at + 2 + size
    if (start + length > bytes.length) break
    const payload = bytes.subarray(start, start + length)
    const opcode = bytes[at] & 0x0f
    const isPing = opcode === 10 && payload.toString() === 'z'
    if (opcode === 8 || isPing) last = opcode
    if (opcode === 1) {
      const fault = faultOfMessage(payload.toString())
      if (fault !== undefined) return { fault, last }
    }
    at = start + length
  }
  return { last }
}

function faultOfMessage(text: string): string | undefined {
  try {
    const { type, error, code } = JSON.parse(text) as {
      type?: unknown
      error?: { code?: string; message?: unknown }
      code?: string
    }
    if (typeof type !== 'string') return `no type: ${text.slice(0, 500)}`
    if ((error?.code ?? code) === 'internal_error') return text.slice(0, 500)
    return type === 'error' && error !== undefined && typeof error.message !== 'string'
      ? `no message: ${text}`
      : undefined
  } catch {
    return `not JSON: ${text.slice(0, 500)}`
  }
}
