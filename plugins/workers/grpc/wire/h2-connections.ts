/** The connections of one thread for generations: one for each worker's address, made when it is needed. */
import type { GrpcConfig } from '../config.ts'
import { baseUrlOf, type Destination } from './channels.ts'
import { H2Connection } from './h2-connection.ts'

export class H2Connections {
  readonly #byUrl = new Map<string, H2Connection>()
  readonly #config: GrpcConfig

  constructor(config: GrpcConfig) {
    this.#config = config
  }

  get maxMessageBytes(): number {
    return this.#config.maxMessageBytes
  }

  /** One that stands or is being made. @throws as `H2Connection` */
  of(destination: Destination): H2Connection {
    const url = baseUrlOf(destination)
    let connection = this.#byUrl.get(url)
    if (connection === undefined || !connection.isOpen) {
      connection = new H2Connection(url, this.#config)
      this.#byUrl.set(url, connection)
    }
    return connection
  }

  /** Closes those that lead to nobody of these; calls under way go on. */
  keepOnly(workers: readonly Destination[]): void {
    const wanted = new Set(workers.map(baseUrlOf))
    for (const [url, connection] of this.#byUrl) {
      if (wanted.has(url)) continue
      this.#byUrl.delete(url)
      connection.close()
    }
  }

  close(): void {
    this.keepOnly([])
  }
}
