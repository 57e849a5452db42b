/**
 * A gRPC engine that sends the same tokens in every stream, one per tick as a batch does. It uses HTTP/2 directly to cost
 * less CPU than the gateway.
 */
import { readFileSync } from 'node:fs'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import {
  encodeGenerateResponse,
  encodeGetModelInfoResponse,
  encodeHealthCheckResponse,
  SglangScheduler,
} from '../../proto/gen/sglang-scheduler.ts'
import { announceReady } from './process.ts'
import { startTicks } from './tick-interval.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    /** File with the token ids as a JSON list; read at the first request. */
    ids: { type: 'string', default: '' },
    tokenizer: { type: 'string', default: 'weir:sample' },
    model: { type: 'string', default: 'bench' },
    /** Sends all tokens in one message. */
    messages: { type: 'string', default: 'one-per-token' },
  },
})
const PROMPT_TOKENS = 40

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Frames of one stream. */
function readFrames(): readonly Buffer[] {
  const ids = JSON.parse(readFileSync(values.ids, 'utf8')) as number[]
  const counts = { promptTokens: PROMPT_TOKENS }
  const chunks = ids.map((id, at) =>
    framed(encodeGenerateResponse({ chunk: { tokenIds: [id], completionTokens: at + 1, ...counts } })),
  )
  const complete = { outputIds: ids, completionTokens: ids.length, finishReason: 'stop', ...counts }
  const last = framed(encodeGenerateResponse({ complete }))
  return values.messages === 'one' ? [last] : [...chunks, last]
}

let frames: readonly Buffer[] | null = null
const running = new Map<ServerHttp2Stream, number>()
const HEAD = { ':status': 200, 'content-type': 'application/grpc' }

function generate(stream: ServerHttp2Stream): void {
  frames ??= readFrames()
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.on('close', () => running.delete(stream))
  running.set(stream, 0)
}

function tick(): void {
  const messages = frames ?? []
  for (const [stream, at] of running) {
    if (at < messages.length) {
      stream.write(messages[at])
      running.set(stream, at + 1)
    } else {
      running.delete(stream)
      stream.end()
    }
  }
}

function respond(stream: ServerHttp2Stream, message: Buffer | null): void {
  if (message === null) {
    stream.respond({ ...HEAD, 'grpc-status': '12' }, { endStream: true })
    return
  }
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(framed(message))
}

const responses: ReadonlyMap<string, Buffer> = new Map([
  [SglangScheduler.HealthCheck, encodeHealthCheckResponse({ healthy: true })],
  [
    SglangScheduler.GetModelInfo,
    encodeGetModelInfoResponse({
      servedModelName: values.model,
      modelPath: values.tokenizer,
      tokenizerPath: values.tokenizer,
      isGeneration: true,
    }),
  ],
  [SglangScheduler.GetServerInfo, Buffer.alloc(0)],
  [SglangScheduler.Abort, Buffer.alloc(0)],
])

const server = createServer()
server.on('stream', (stream, headers) => {
  const path = String(headers[':path'])
  stream.on('error', () => {})
  stream.resume()
  if (path === SglangScheduler.Generate) generate(stream)
  else respond(stream, responses.get(path) ?? null)
})
server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  startTicks(tick)
  announceReady({ port })
})
