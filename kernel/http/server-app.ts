/** The library uWebSockets.js and its app: address, certificates, and when it accepts connections. */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { createRequire } from 'node:module'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BootError } from '../errors/boot-error.ts'
import { isLoopback } from './cors.ts'
import type { TlsFiles } from './tls-files.ts'

/** Members that the types of the library omit. */
interface Untyped {
  readonly _cfg?: (key: string) => void
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
}
type Library = typeof import('uWebSockets.js') & Untyped

export const serverLibrary = load(() => createRequire(import.meta.url)('uWebSockets.js') as Library)

/** @throws BootError if this platform or Node version has no binary */
export function load<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    const { platform, arch, version } = process
    // The reason follows a list of supported platforms in the message.
    const reason = /^Error: (.*)$/m.exec(String((error as Error).message))?.[1] ?? String(error)
    throw new BootError(
      `the HTTP server's binary for ${platform}-${arch} and Node ${version} cannot be loaded (${reason}): run npm install with this Node, optional packages included; Linux needs glibc`,
      error,
    )
  }
}

const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = serverLibrary
const { _cfg: configure, LIBUS_LISTEN_EXCLUSIVE_PORT: EXCLUSIVE_PORT } = serverLibrary
/** Disables the library's own header in responses. */
configure?.('999999990007')
/** Several threads may listen on one port. */
const SHARED_PORT = 0

type Listening = (socket: us_listen_socket | false) => void
interface ListeningApp {
  listen(host: string, port: number, options: number, cb: Listening): unknown
}

export class ServerApp {
  needsCertificate: boolean
  /** It listens on an address of this machine alone. */
  isLocal = false
  /** Created by the first `listen`: the library never frees an app, and a reload checks a configuration without listening. */
  #app: TemplatedApp | null = null
  #tls: TlsFiles | null
  /** Apps from before a renewal of certificates, whose connections stay open. */
  readonly #formerApps: TemplatedApp[] = []
  /** Address of the last successful `listen`. */
  #address: { readonly host: string; readonly port: number } | null = null
  readonly #addRoutes: (app: TemplatedApp) => void
  #listenSocket: us_listen_socket | null = null
  #isStopping = false
  #isClosed = false

  /** @param tls null serves plain HTTP */
  constructor(tls: TlsFiles | null, addRoutes: (app: TemplatedApp) => void) {
    this.#tls = tls
    this.needsCertificate = tls?.ca_file_name !== undefined
    this.#addRoutes = addRoutes
  }

  /** @param isAlone no other listener may share the port @returns the port @throws Error when the address is in use */
  listen(host: string, port: number, isAlone: boolean): Promise<number> {
    return this.#listen(host, port, isAlone).then((taken) => {
      this.#address = { host, port: taken }
      this.isLocal = isLoopback(host)
      return taken
    })
  }

  /**
   * Uses these certificates for new connections; open ones keep theirs. The old listener closes after the new one has opened
   * on the same port and the old one has accepted its backlog, which the system would reset.
   */
  renewTls(tls: TlsFiles): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    const former = this.#listenSocket
    if (this.#app !== null) this.#formerApps.push(this.#app)
    this.#app = null
    this.#tls = tls
    this.needsCertificate = tls.ca_file_name !== undefined
    // Not listening: the next `listen` uses the new app.
    if (former === null || this.#address === null) return Promise.resolve()
    // The first turn ends before the loop polls sockets, the second right after.
    return this.#listen(this.#address.host, this.#address.port, false)
      .then(() => nextTurn())
      .then(() => nextTurn())
      .then(() => us_listen_socket_close(former))
  }

  /** Stops listening; open connections stay. */
  pauseAccepting(): void {
    if (this.#listenSocket !== null) us_listen_socket_close(this.#listenSocket)
    this.#listenSocket = null
  }

  resumeAccepting(): Promise<boolean> {
    if (this.#isClosed || this.#isStopping || this.#address === null) return Promise.resolve(false)
    const { host, port } = this.#address
    return this.#listen(host, port, false).then(
      () => true,
      () => false,
    )
  }

  /** Stops listening permanently; open connections stay. */
  stopAccepting(): void {
    this.#isStopping = true
    this.pauseAccepting()
  }

  /** Closes every connection. Must be called before the thread ends: the library aborts the process otherwise. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#listenSocket = null
    this.#app?.close()
    for (const app of this.#formerApps) app.close()
  }

  #listen(host: string, port: number, isAlone: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      const app = this.#openApp() as unknown as ListeningApp
      app.listen(host, port, isAlone ? EXCLUSIVE_PORT : SHARED_PORT, (socket) => {
        if (socket === false) {
          reject(new Error(`cannot listen on ${host}:${port}: the address is in use or not on this machine`))
          return
        }
        this.#listenSocket = socket
        resolve(us_socket_local_port(socket))
      })
    })
  }

  #openApp(): TemplatedApp {
    if (this.#app !== null) return this.#app
    this.#app = this.#tls === null ? App() : SSLApp(this.#tls)
    this.#addRoutes(this.#app)
    return this.#app
  }
}

interface Link<Args extends unknown[]> {
  callback: ((...args: Args) => void) | null
}

/**
 * The functions that the server library calls. The library never frees an app and keeps its functions; it gets functions
 * that reach these through a link, so that a closed server and everything it refers to can be collected.
 */
export class LibraryCallbacks {
  readonly #releases: (() => void)[] = []

  /** @returns a function for the library, which calls this one until `release` */
  add<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    const link: Link<Args> = { callback }
    this.#releases.push(() => {
      link.callback = null
    })
    return follow(link)
  }

  /** Call after the apps have closed. */
  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
}

/** Not part of `add`: the returned function must not share a scope with the callback. */
function follow<Args extends unknown[]>(link: Link<Args>): (...args: Args) => void {
  return (...args) => link.callback?.(...args)
}
