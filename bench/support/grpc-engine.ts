/**
 * An engine over gRPC, run as a process of its own: every answer is the same tokens, and every stream gets one more of
 * them at each tick, as a batch does. Bare HTTP/2, so that it costs little beside what is measured.
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
import { switchPace } from './pace.ts'
import { announceReady } from './process.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    /** A file with the ids of the answer as a JSON list; read when the first request comes. */
    ids: { type: 'string', default: '' },
    tokenizer: { type: 'string', default: 'weir:sample' },
  },
})
const PROMPT_TOKENS = 40

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** All messages of an answer, as they go on the wire. */
function readAnswer(): readonly Buffer[] {
  const ids = JSON.parse(readFileSync(values.ids, 'utf8')) as number[]
  const counts = { promptTokens: PROMPT_TOKENS }
  const chunks = ids.map((id, at) =>
    framed(encodeGenerateResponse({ chunk: { tokenIds: [id], completionTokens: at + 1, ...counts } })),
  )
  const complete = { outputIds: ids, completionTokens: ids.length, finishReason: 'stop', ...counts }
  return [...chunks, framed(encodeGenerateResponse({ complete }))]
}

let answer: readonly Buffer[] | null = null
const running = new Map<ServerHttp2Stream, number>()
const HEAD = { ':status': 200, 'content-type': 'application/grpc' }

function generate(stream: ServerHttp2Stream): void {
  answer ??= readAnswer()
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.on('close', () => running.delete(stream))
  running.set(stream, 0)
}

function tick(): void {
  const messages = answer ?? []
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

function reply(stream: ServerHttp2Stream, message: Buffer | null): void {
  if (message === null) {
    stream.respond({ ...HEAD, 'grpc-status': '12' }, { endStream: true })
    return
  }
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(framed(message))
}

const answers: ReadonlyMap<string, Buffer> = new Map([
  [SglangScheduler.HealthCheck, encodeHealthCheckResponse({ healthy: true })],
  [
    SglangScheduler.GetModelInfo,
    encodeGetModelInfoResponse({
      servedModelName: 'bench',
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
  else reply(stream, answers.get(path) ?? null)
})
server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  switchPace(tick)
  announceReady({ port })
})
