/** A TCP proxy, with or without TLS for its clients, in front of a server that can refuse, delay, or swallow bytes. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'

export class ByteProxy {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false
  #isHalfOpen = false
  /** Delay of each piece in each direction, milliseconds. */
  delayMs = 0

  /** Use `openByteProxy`. */
  constructor(server: Server, targetPort: number, isTls: boolean) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    const accept = (client: Socket) => this.#accept(client, targetPort)
    server.on(isTls ? 'secureConnection' : 'connection', accept)
  }

  /** Closes all connections, and every new one at once. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Keeps connections open and accepts new ones, but nothing passes, not even a close. */
  halfOpen(): void {
    this.#isHalfOpen = true
  }

  /** Ends all faults. What was swallowed or is still delayed is lost, and its connections with it. */
  heal(): void {
    if (this.#isHalfOpen || this.delayMs > 0) for (const socket of this.#sockets) socket.destroy()
    this.#isHalfOpen = false
    this.#isCut = false
    this.delayMs = 0
  }

  async close(): Promise<void> {
    this.cut()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  #accept(client: Socket, targetPort: number): void {
    if (this.#isCut) {
      client.destroy()
      return
    }
    const target = connect(targetPort, '127.0.0.1')
    this.#pass(client, target)
    this.#pass(target, client)
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on('error', () => undefined)
    from.on('data', (bytes) => {
      if (this.#isHalfOpen) return
      if (this.delayMs === 0) to.write(bytes)
      else setTimeout(() => to.write(bytes), this.delayMs)
    })
    from.on('close', () => {
      this.#sockets.delete(from)
      if (!this.#isHalfOpen) to.destroy()
    })
  }
}

/** @param tls key and certificate; clients must use TLS then */
export async function openByteProxy(targetPort: number, tls: TlsOptions | null = null): Promise<ByteProxy> {
  const server = (tls === null ? createServer() : createTlsServer(tls)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new ByteProxy(server, targetPort, tls !== null)
}
