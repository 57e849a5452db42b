/** Control's handle of one running data thread: its port, its metrics and its end. */
import { MessageChannel, Worker } from 'node:worker_threads'
import type { MetricsSnapshot } from '../contracts/metric.ts'
import { messageOf } from '../errors/message-of.ts'
import type { Attachment, ControlLink } from './control-link.ts'
import type { DownMessage, ThreadSeed, ThreadWorkerData, UpMessage } from './messages.ts'
import { settlesWithin } from './settles-within.ts'
import type { SharedMemory } from './shared-memory.ts'

export interface ThreadHandleOptions {
  readonly entry: URL
  readonly execArgv: readonly string[] | undefined
  readonly link: ControlLink
  readonly shared: SharedMemory
  /** Start data of the thread; replicas and shared memory are added here. */
  readonly seed: Omit<ThreadSeed, 'replicas' | 'shared' | 'sharedPort'>
}

export interface ThreadEnd {
  readonly exitCode: number
  /** The thread's own report or Node's error; null after an orderly end. */
  readonly reason: string | null
  readonly livedMs: number
}

export class ThreadHandle {
  readonly index: number
  /** The thread's port; rejects when it ends before it listens. */
  readonly listening: Promise<number>
  readonly ended: Promise<ThreadEnd>
  lastSnapshot: MetricsSnapshot | null = null
  hasEnded = false
  readonly #worker: Worker
  readonly #attachment: Attachment
  readonly #collects = new Map<number, (snapshot: MetricsSnapshot | null) => void>()
  readonly #listening = Promise.withResolvers<number>()
  readonly #drained = Promise.withResolvers<void>()
  #lastCollectId = 0
  #reason: string | null = null

  constructor({ entry, execArgv, link, shared, seed }: ThreadHandleOptions) {
    const startedAtMs = performance.now()
    this.index = seed.index
    const { port1, port2: sharedPort } = new MessageChannel()
    shared.connect(port1)
    const workerData: ThreadWorkerData = {
      weirThread: { ...seed, shared: shared.blocks, sharedPort, replicas: link.published() },
    }
    this.#worker = new Worker(entry, {
      workerData,
      transferList: [sharedPort],
      execArgv: execArgv?.slice(),
      name: `data-${seed.index}`,
    })
    // In the same tick as the copy of the replicas, so that no publication is missed between the two.
    this.#attachment = link.attach((message, transfer) => this.#post(message, transfer))
    this.listening = this.#listening.promise
    // After a restart nothing awaits it, and the rejection must not end the process.
    this.listening.catch(() => {})
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', (exitCode) => {
        this.#release()
        resolve({ exitCode, reason: this.#reason, livedMs: performance.now() - startedAtMs })
      })
    })
    this.#worker.on('message', (message: UpMessage) => this.#receive(message))
    this.#worker.on('error', (error) => {
      this.#reason ??= messageOf(error)
    })
  }

  /** Requests metrics; null if the thread does not respond within the limit, or ends. */
  async collect(families: readonly string[] | null, limitMs: number): Promise<MetricsSnapshot | null> {
    if (this.hasEnded) return null
    this.#lastCollectId += 1
    const id = this.#lastCollectId
    const { promise, resolve } = Promise.withResolvers<MetricsSnapshot | null>()
    this.#collects.set(id, resolve)
    this.#post({ type: 'collect', id, families })
    const isInTime = await settlesWithin(promise, limitMs)
    this.#collects.delete(id)
    return isInTime ? promise : null
  }

  /** Resolves when the thread has drained or ended. */
  drain(deadlineMs: number, settleMs: number): Promise<void> {
    this.#post({ type: 'drain', deadlineMs, settleMs })
    return this.#drained.promise
  }

  /** Orders the thread to end; see `ended`. */
  stop(): void {
    this.#post({ type: 'stop' })
  }

  #post(message: DownMessage, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: UpMessage): void {
    switch (message.type) {
      case 'listening':
        this.#listening.resolve(message.port)
        return
      case 'metrics':
        if (message.isWhole) this.lastSnapshot = message.snapshot
        this.#collects.get(message.id)?.(message.snapshot)
        return
      case 'drained':
        this.#drained.resolve()
        return
      case 'fatal':
        this.#reason = message.message
        this.lastSnapshot = message.snapshot ?? this.lastSnapshot
        return
      default:
        this.#attachment.receive(message)
    }
  }

  #release(): void {
    this.hasEnded = true
    this.#attachment.detach()
    this.#listening.reject(
      new Error(`data thread ${this.index} ended before it listened: ${this.#reason ?? 'no reason given'}`),
    )
    this.#drained.resolve()
    for (const settle of [...this.#collects.values()]) settle(null)
  }
}
