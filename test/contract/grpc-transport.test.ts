/** Runs the transport contract over gRPC. */
import { once } from 'node:events'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import type { GrpcConfig } from '../../plugins/workers/grpc/config.ts'
import { GrpcControl } from '../../plugins/workers/grpc/control/grpc-control.ts'
import { PushedLoads } from '../../plugins/workers/grpc/control/pushed-loads.ts'
import { Channels } from '../../plugins/workers/grpc/wire/channels.ts'
import { GrpcTransport } from '../../plugins/workers/grpc/wire/grpc-transport.ts'
import { H2Connections } from '../../plugins/workers/grpc/wire/h2-connections.ts'
import { framed } from '../../plugins/workers/grpc/wire/message-framer.ts'
import { SentRequests } from '../../plugins/workers/grpc/wire/sent-requests.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import { ANSWER, type ContractEngine, type EngineManner, transportContract } from './transport-contract.ts'

const CONFIG: GrpcConfig = {
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  maxMessageBytes: 1_048_576,
  streamWindowBytes: 65_535,
  maxReconnectWaitMs: 200,
  caFile: null,
}
const { Generate, HealthCheck, GetModelInfo } = sglang.SglangScheduler
const HEAD = { ':status': 200, 'content-type': 'application/grpc' }
const piece = (text: string) => framed(Buffer.from(text))

function answer(stream: ServerHttp2Stream, messages: readonly Buffer[]): void {
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  for (const message of messages) stream.write(message)
  stream.end()
}

function speak(stream: ServerHttp2Stream, manner: EngineManner): void {
  if (manner === 'silent') return
  if (manner === 'answers') {
    answer(stream, [ANSWER, ' and more', ' and the rest'].map(piece))
    return
  }
  stream.respond(HEAD, { waitForTrailers: true })
  if (manner === 'endless') {
    const more = () => {
      while (!stream.destroyed && stream.write(piece('x'.repeat(1_000)))) {}
    }
    stream.on('drain', more)
    more()
  } else
    stream.write(piece(ANSWER), () => {
      if (manner === 'breaks') setTimeout(() => stream.session?.destroy(), 20)
    })
}

async function openEngine(manner: EngineManner): Promise<ContractEngine> {
  const arrived = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    session.on('error', () => {})
    sessions.add(session)
  })
  server.on('stream', (stream, headers) => {
    const path = headers[':path']
    stream.on('error', () => {})
    stream.resume()
    if (path === Generate) {
      arrived.resolve()
      stream.on('close', () => left.resolve())
      speak(stream, manner)
    } else if (manner === 'silent') return
    else if (path === HealthCheck)
      answer(stream, [framed(sglang.encodeHealthCheckResponse({ healthy: true }))])
    else if (path === GetModelInfo)
      answer(stream, [framed(sglang.encodeGetModelInfoResponse({ servedModelName: 'm' }))])
    else stream.respond({ ...HEAD, 'grpc-status': '12' }, { endStream: true })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived: arrived.promise,
    left: left.promise,
    async close() {
      for (const session of sessions) session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

transportContract('grpc', () => {
  const channels = new Channels(CONFIG)
  return {
    transport: new GrpcTransport(new H2Connections(CONFIG), new SentRequests()),
    control: new GrpcControl({
      channels,
      tokenizers: { ensure: async () => {} },
      pushed: new PushedLoads(),
      log: { warn() {} },
    }),
    request: { method: 'POST', path: Generate, headers: [], body: Buffer.alloc(0) },
    openEngine,
    async absentUrl() {
      const server = createTcpServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      server.close()
      await once(server, 'close')
      return `grpc://127.0.0.1:${port}`
    },
    close: () => channels.close(),
  }
})
