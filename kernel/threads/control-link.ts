/** Control's end of the links: runs command handlers and publishes replicas to the attached data threads. */
import type { Logger } from '../contracts/log.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { type ReplicaCell, ReplicaCells, type ThreadLink } from './link.ts'
import {
  type LinkDownMessage,
  type LinkUpMessage,
  type ReplicaState,
  type SendDown,
  threadErrors,
  toFailure,
} from './messages.ts'
import { type DataPort, ProcessPools } from './process-pools.ts'

export interface ControlLinkOptions {
  readonly log: Logger
  /** True with `threads: 0`, where control serves requests too. Default false. */
  readonly isData?: boolean
}

/** The link of one data thread. */
export interface Attachment {
  receive(message: LinkUpMessage): void
  /** The thread has ended: it counts as having acknowledged everything. Safe to call twice. */
  detach(): void
}

/** A publication that threads still have to acknowledge. */
interface Publication {
  readonly waiting: Set<DataPort>
  readonly resolve: () => void
}

type CommandMessage = Extract<LinkUpMessage, { type: 'command' }>

export class ControlLink implements ThreadLink {
  readonly isControl = true
  readonly isData: boolean
  readonly index = 0
  readonly #log: Logger
  readonly #cells: ReplicaCells
  readonly #handlers = new Map<string, (payload: unknown) => unknown>()
  readonly #ports = new Set<DataPort>()
  /** By replica name and version. */
  readonly #publications = new Map<string, Publication>()
  readonly #pools = new ProcessPools()

  constructor({ log, isData = false }: ControlLinkOptions) {
    this.#log = log
    this.isData = isData
    this.#cells = new ReplicaCells(log)
  }

  async command(name: string, payload: unknown): Promise<unknown> {
    const handler = this.#handlers.get(name)
    if (handler === undefined) throw threadErrors.unknown_command(name)
    return handler(payload)
  }

  /** @throws when the command has a handler already */
  onCommand(name: string, handler: (payload: unknown) => unknown): void {
    if (this.#handlers.has(name)) throw new Error(`the command ${name} has two handlers`)
    this.#handlers.set(name, handler)
  }

  replica(name: string, initial: unknown): ReplicaCell {
    return this.#cells.cell(name, initial)
  }

  /** @throws DataCloneError if the value cannot be cloned; then nothing has changed on any thread */
  async publish(name: string, value: unknown): Promise<void> {
    const state: ReplicaState = { value, version: this.#cells.version(name) + 1 }
    const message: LinkDownMessage = { type: 'replica', name, state }
    const waiting = new Set<DataPort>()
    // Sent before the local swap: a value that cannot be cloned fails on the first port, and no thread differs.
    for (const port of this.#ports) {
      port.send(message)
      waiting.add(port)
    }
    const acknowledged = this.#allAcknowledged(publicationKey(name, state.version), waiting)
    const own = this.#cells.swap(name, state)
    await acknowledged
    await own
  }

  /** Everything published so far; a thread attached in the same tick misses nothing. */
  published(): Record<string, ReplicaState> {
    return this.#cells.published()
  }

  processPool(name: string, _threads: number, open: () => TaskPool): TaskPool {
    return this.#pools.add(name, open())
  }

  attach(send: SendDown): Attachment {
    const port: DataPort = { send }
    this.#ports.add(port)
    return {
      receive: (message) => this.#receive(port, message),
      detach: () => {
        this.#ports.delete(port)
        this.#pools.remove(port)
        for (const key of this.#publications.keys()) this.#acknowledge(key, port)
      },
    }
  }

  #allAcknowledged(key: string, waiting: Set<DataPort>): Promise<void> {
    if (waiting.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#publications.set(key, { waiting, resolve })
    })
  }

  #acknowledge(key: string, port: DataPort): void {
    const publication = this.#publications.get(key)
    if (publication === undefined) return
    publication.waiting.delete(port)
    if (publication.waiting.size > 0) return
    this.#publications.delete(key)
    publication.resolve()
  }

  #receive(port: DataPort, message: LinkUpMessage): void {
    // A late message of a thread that has ended.
    if (!this.#ports.has(port)) return
    if (message.type === 'replica_ack') this.#acknowledge(publicationKey(message.name, message.version), port)
    else if (message.type === 'command') void this.#runCommand(port, message)
    else this.#pools.receive(port, message)
  }

  /** Never rejects: failures are sent to the thread. */
  async #runCommand(port: DataPort, { id, name, payload }: CommandMessage): Promise<void> {
    try {
      const value = await this.command(name, payload)
      port.send({ type: 'command_done', id, value })
    } catch (err) {
      if (!(err instanceof GatewayError)) this.#log.error({ err, command: name }, 'command failed')
      port.send({ type: 'command_failed', id, failure: toFailure(err) })
    }
  }
}

function publicationKey(name: string, version: number): string {
  return `${version} ${name}`
}
