/** The API's certificate files, looked at from time to time: renewed ones hold here without a restart. */
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { KernelConfig, Logger } from '#kernel'

/** How often they are looked at. milliseconds */
const LOOK_MS = 10_000

type TlsConfig = NonNullable<KernelConfig['tls']>
interface TlsServer {
  setSecureContext(options: SecureContextOptions): void
}

export class Certificates {
  readonly #tls: () => TlsConfig
  readonly #log: Logger
  #seen: SecureContextOptions
  /** What was wrong at the last look; null when nothing was. */
  #problem: string | null = null
  #timer: NodeJS.Timeout | undefined

  /**
   * @param tls as configured now: a reload may name other files
   * @throws Error when the files cannot be read
   */
  constructor(tls: () => TlsConfig, log: Logger) {
    this.#tls = tls
    this.#log = log
    this.#seen = this.#read()
  }

  /** As the files were when they were last looked at. */
  get options(): SecureContextOptions {
    return this.#seen
  }

  renew(server: TlsServer): void {
    this.#timer = setInterval(() => this.#look(server), LOOK_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Files that do not fit each other are being changed, or wrong: what there was goes on. */
  #look(server: TlsServer): void {
    try {
      const next = this.#read()
      this.#problem = null
      if (next.cert === this.#seen.cert && next.key === this.#seen.key) return
      this.#seen = next
      createSecureContext(next)
      server.setSecureContext(next)
      this.#log.info({}, 'the certificate was renewed')
    } catch (err) {
      const problem = String(err)
      if (problem === this.#problem) return
      this.#problem = problem
      this.#log.warn({ err }, 'the files of kernel.tls cannot be used; the former certificate is shown')
    }
  }

  #read(): SecureContextOptions {
    const { certFile, keyFile, keyPassphrase } = this.#tls()
    return {
      cert: readFileSync(certFile, 'utf8'),
      key: readFileSync(keyFile, 'utf8'),
      passphrase: keyPassphrase,
    }
  }
}
