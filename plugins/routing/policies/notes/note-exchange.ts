/**
 * Exchanges notes with the other gateways, on control: sends what the data threads have noted, and applies what others
 * send. Notes may be lost: then a prompt or session may have another worker on another gateway.
 */
import type { CounterHandle, MeshChannel, WorkerEntry } from '#kernel'
import type { WorkerHashes } from '#shared'
import type { WorkerCounters } from '../worker-counters.ts'
import { NoteBatch, NoteBatchReader } from './note-batch.ts'
import type { NoteRing, TakeNote } from './note-ring.ts'

/** Between messages; while there are none, the time doubles up to the longest one. */
const TICK_MS = 100
const MAX_TICK_MS = 400
/** Notes of a tick that are sent, and of other gateways that are applied. */
const MAX_SENT = 5_000
const MAX_APPLIED = 5_000

export interface NoteExchangeParts {
  readonly channel: MeshChannel
  readonly ring: NoteRing
  readonly counters: WorkerCounters
  readonly hashes: WorkerHashes
  /** Undefined for a free row. */
  readonly workerOf: (slot: number) => WorkerEntry | undefined
  /** Takes a note of another gateway about a worker of the table. */
  readonly apply: TakeNote
  readonly count: Readonly<Record<'sent' | 'received' | 'dropped', CounterHandle>>
}

export class NoteExchange {
  readonly #parts: NoteExchangeParts
  readonly #batch: NoteBatch
  readonly #reader = new NoteBatchReader()
  #timer: NodeJS.Timeout | undefined
  readonly #collect: TakeNote = (low, high, value, name) => this.#add(low, high, value, name)
  /** Notes that may be applied before the next tick. */
  #left = MAX_APPLIED
  #tickMs = TICK_MS
  #isBusy = false

  constructor(parts: NoteExchangeParts) {
    this.#parts = parts
    this.#batch = new NoteBatch((message) => parts.channel.send(message))
    parts.channel.onMessage((message) => this.#receive(message))
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#tick()
      this.start()
    }, this.#tickMs).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #tick(): void {
    this.#isBusy = this.#left < MAX_APPLIED
    this.#left = MAX_APPLIED
    const lost = this.#parts.ring.drain(MAX_SENT, this.#collect)
    if (lost > 0) this.#parts.count.dropped.inc(lost)
    this.#batch.flush()
    this.#tickMs = this.#isBusy ? TICK_MS : Math.min(MAX_TICK_MS, this.#tickMs * 2)
  }

  /** The worker may have been removed meanwhile. */
  #add(low: number, high: number, value: number, name: number): void {
    const { workerOf, counters, hashes, count } = this.#parts
    const worker = workerOf(name >>> 16)
    const hash = worker !== undefined && counters.nameOf(worker) === name ? hashes.of(worker) : undefined
    if (hash === undefined) return
    this.#batch.add(low, high, value, hash)
    this.#isBusy = true
    count.sent.inc()
  }

  #receive(message: Buffer): void {
    const { counters, hashes, apply, count } = this.#parts
    const workers = this.#reader.open(message)
    if (workers === null) return
    const names = workers.map((hash) => {
      const worker = hashes.find(hash)
      return worker === undefined ? 0 : counters.nameOf(worker)
    })
    const taken = Math.min(this.#left, this.#reader.count)
    this.#left -= taken
    count.received.inc(taken)
    count.dropped.inc(this.#reader.count - taken)
    this.#reader.read(taken, (low, high, value, worker) => {
      const name = names[worker]
      if (name !== undefined && name !== 0) apply(low, high, value, name)
    })
  }
}
