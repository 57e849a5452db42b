/**
 * The topics of one thread, over one `BroadcastChannel` of the process. Every thread counts its subscriptions by hash of
 * topic and key in shared memory, so that events without a subscription are not sent.
 */
import { randomInt } from 'node:crypto'
import { BroadcastChannel } from 'node:worker_threads'
import type { Logger } from '../contracts/log.ts'
import type { Topic, TopicToken } from '../contracts/token.ts'

/** Cells per thread; two keys with the same hash cost needless messages, nothing else. */
const HASHES = 4_096
const GATEWAY_ID_AT = 0
const HEADER_CELLS = 1

export interface TopicsOptions {
  /** Shared by all threads of the gateway; of `topicBytes` bytes, zeroed by the first thread. */
  readonly memory: SharedArrayBuffer
  /** 0 is control. */
  readonly threadIndex: number
  readonly log: Logger
}

/** @param threadCount threads of the gateway, control included */
export function topicBytes(threadCount: number): number {
  return (HEADER_CELLS + threadCount * HASHES) * Int32Array.BYTES_PER_ELEMENT
}

/** An event between threads: topic and key in one string, and the event. */
type TopicMessage = readonly [address: string, event: unknown]
type Listener = (event: unknown) => void

export class Topics {
  readonly #cells: Int32Array
  readonly #ownRow: number
  readonly #log: Logger
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #channel: BroadcastChannel

  constructor({ memory, threadIndex, log }: TopicsOptions) {
    this.#cells = new Int32Array(memory)
    this.#log = log
    this.#ownRow = HEADER_CELLS + threadIndex * HASHES
    // A thread that replaces a dead one starts without the subscriptions of its predecessor.
    this.#cells.fill(0, this.#ownRow, this.#ownRow + HASHES)
    // One process may run several gateways, whose channels must differ.
    Atomics.compareExchange(this.#cells, GATEWAY_ID_AT, 0, randomInt(1, 2 ** 31))
    this.#channel = new BroadcastChannel(`weir-topics-${this.#cells[GATEWAY_ID_AT]}`)
    this.#channel.onmessage = (message: unknown) => {
      const [address, event] = (message as { data: TopicMessage }).data
      this.#deliver(address, event)
    }
    this.#channel.unref()
  }

  topic<Event>({ name }: TopicToken<Event>): Topic<Event> {
    return {
      publish: (key, event) => this.#publish(`${name} ${key}`, event),
      subscribe: (key, listener) => this.#subscribe(`${name} ${key}`, listener as Listener),
    }
  }

  close(): void {
    this.#channel.close()
  }

  #publish(address: string, event: unknown): boolean {
    const isHeardElsewhere = this.#isHeardElsewhere(hashOf(address))
    if (isHeardElsewhere) this.#channel.postMessage([address, event] satisfies TopicMessage)
    return this.#deliver(address, event) || isHeardElsewhere
  }

  #subscribe(address: string, listener: Listener): () => void {
    const cell = this.#ownRow + hashOf(address)
    const listeners = this.#listeners.get(address) ?? new Set()
    this.#listeners.set(address, listeners)
    // A function of its own: the same listener may subscribe twice.
    const own: Listener = (event) => listener(event)
    listeners.add(own)
    Atomics.add(this.#cells, cell, 1)
    return () => {
      if (!listeners.delete(own)) return
      Atomics.sub(this.#cells, cell, 1)
      if (listeners.size === 0 && this.#listeners.get(address) === listeners) this.#listeners.delete(address)
    }
  }

  #isHeardElsewhere(hash: number): boolean {
    for (let row = HEADER_CELLS; row < this.#cells.length; row += HASHES) {
      if (row !== this.#ownRow && Atomics.load(this.#cells, row + hash) > 0) return true
    }
    return false
  }

  #deliver(address: string, event: unknown): boolean {
    const listeners = this.#listeners.get(address)
    if (listeners === undefined) return false
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (err) {
        this.#log.error({ err, address }, 'topic listener failed')
      }
    }
    return true
  }
}

/** FNV-1a, 32 bits, folded to the table. */
function hashOf(address: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < address.length; i++) hash = Math.imul(hash ^ address.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 16)) & (HASHES - 1)
}
