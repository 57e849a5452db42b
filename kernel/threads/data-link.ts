/** A data thread's end of the link: sends commands to control and receives replicas. */
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from '../contracts/log.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import { type ReplicaCell, ReplicaCells, type ThreadLink } from './link.ts'
import {
  type DownMessage,
  fromFailure,
  type LifeDownMessage,
  type LifeUpMessage,
  type ReplicaState,
  type UpMessage,
} from './messages.ts'
import { RemoteTasks } from './process-pools.ts'

export interface DataLinkOptions {
  /** The thread's `parentPort`. */
  readonly port: MessagePort
  /** 1-based. */
  readonly index: number
  /** Everything published before this thread started. */
  readonly replicas: Readonly<Record<string, ReplicaState>>
  readonly log: Logger
}

interface PendingCommand {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class DataLink implements ThreadLink {
  readonly isControl = false
  readonly isData = true
  readonly index: number
  readonly #tasks = new RemoteTasks((message, transfer) => this.#post(message, transfer))
  readonly #port: MessagePort
  readonly #cells: ReplicaCells
  readonly #pending = new Map<number, PendingCommand>()
  #lastId = 0
  #onLife: ((message: LifeDownMessage) => void) | null = null
  /** Orders received before `onLife` was called. */
  readonly #earlyLife: LifeDownMessage[] = []

  constructor({ port, index, replicas, log }: DataLinkOptions) {
    this.index = index
    this.#port = port
    this.#cells = new ReplicaCells(log)
    for (const [name, state] of Object.entries(replicas)) void this.#cells.swap(name, state)
    port.on('message', (message: DownMessage) => this.#receive(message))
  }

  command(name: string, payload: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#lastId += 1
      const id = this.#lastId
      this.#post({ type: 'command', id, name, payload })
      this.#pending.set(id, { resolve, reject })
    })
  }

  onCommand(): void {
    // Handlers run on control only.
  }

  replica(name: string, initial: unknown): ReplicaCell {
    return this.#cells.cell(name, initial)
  }

  async publish(name: string): Promise<void> {
    throw new Error(`only control may publish ${name}`)
  }

  /** Reports to control about this thread's life. */
  report(message: LifeUpMessage): void {
    this.#post(message)
  }

  /** Sets the one listener of control's orders and passes it those received before. */
  onLife(listener: (message: LifeDownMessage) => void): void {
    this.#onLife = listener
    for (const message of this.#earlyLife.splice(0)) listener(message)
  }

  processPool(name: string, threads: number): TaskPool {
    return this.#tasks.pool(name, threads)
  }

  #post(message: UpMessage, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  #receive(message: DownMessage): void {
    switch (message.type) {
      case 'replica':
        this.#applyReplica(message.name, message.state)
        return
      case 'command_done':
        this.#settle(message.id)?.resolve(message.value)
        return
      case 'command_failed':
        this.#settle(message.id)?.reject(fromFailure(message.failure))
        return
      case 'task_done':
      case 'task_failed':
        this.#tasks.receive(message)
        return
      default:
        if (this.#onLife === null) this.#earlyLife.push(message)
        else this.#onLife(message)
    }
  }

  #applyReplica(name: string, state: ReplicaState): void {
    const acknowledge = () => this.#post({ type: 'replica_ack', name, version: state.version })
    const pending = this.#cells.swap(name, state)
    if (pending === null) acknowledge()
    else void pending.then(acknowledge)
  }

  #settle(id: number): PendingCommand | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    return pending
  }
}
