/** Opens a TCP or TLS socket to a worker and passes on what happens to it. */
import { connect as connectTcp, type LookupFunction, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { WorkerOrigin } from './worker-origin.ts'

/** Additions to the TLS handshake; Node's own list of authorities counts without them. */
export type TlsSettings = Pick<ConnectionOptions, 'ca' | 'rejectUnauthorized'>

export interface SocketSettings {
  readonly tls?: TlsSettings
  /** In place of the system's. */
  readonly lookup?: LookupFunction
}

export interface SocketListener {
  /** Ready to be written to, TLS handshake included. */
  onConnected(): void
  /** The bytes from 0 to `length` are valid during the call; the listener may write to them. */
  onRead(buffer: Buffer, length: number): void
  /** The worker sends nothing more. */
  onWorkerEnd(): void
  /** Broken, refused, or closed; may come more than once. */
  onLost(cause: Error | undefined): void
}

const KEEP_ALIVE_PROBE_MS = 30_000

/**
 * All TCP sockets of the thread read into this buffer: a read is used up before the next one starts, so an open and
 * silent connection holds no memory for reading.
 */
const readBuffer = Buffer.allocUnsafeSlow(65_536)

/** Begins to connect. */
export function openSocket(origin: WorkerOrigin, settings: SocketSettings, listener: SocketListener): Socket {
  const socket = origin.isTls ? openTls(origin, settings, listener) : openTcp(origin, settings, listener)
  socket.on('error', (error) => listener.onLost(error))
  socket.on('end', () => listener.onWorkerEnd())
  socket.on('close', () => listener.onLost(undefined))
  return socket
}

function openTcp(origin: WorkerOrigin, { lookup }: SocketSettings, listener: SocketListener): Socket {
  const socket = connectTcp({
    host: origin.host,
    port: origin.port,
    lookup,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    onread: {
      buffer: readBuffer,
      callback(length) {
        listener.onRead(readBuffer, length)
        return true
      },
    },
  })
  return socket.on('connect', () => listener.onConnected())
}

function openTls(origin: WorkerOrigin, { tls, lookup }: SocketSettings, listener: SocketListener): Socket {
  const socket = connectTls({
    host: origin.host,
    port: origin.port,
    servername: origin.servername,
    ALPNProtocols: ['http/1.1'],
    lookup,
    ...tls,
  })
  socket.setNoDelay(true)
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
  socket.on('data', (chunk: Buffer) => listener.onRead(chunk, chunk.length))
  return socket.on('secureConnect', () => listener.onConnected())
}
