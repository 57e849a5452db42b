/**
 * Shared memory of all threads. Control creates every block; data threads start with the blocks of that time and request
 * others from control.
 */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { messageOf } from '../errors/message-of.ts'

export type SharedBlocks = ReadonlyMap<string, SharedArrayBuffer>

/** How long a data thread blocks for a block from control. */
const BLOCK_REQUEST_LIMIT_MS = 5_000

/** Request of a data thread, which waits on the first cell of `done`. */
interface BlockRequest {
  readonly id: number
  readonly name: string
  readonly bytes: number
  readonly done: SharedArrayBuffer
}

interface BlockResponse {
  readonly id: number
  /** Null when control refused. */
  readonly block: SharedArrayBuffer | null
  readonly problem: string
}

export class SharedMemory {
  readonly #blocks: Map<string, SharedArrayBuffer>
  readonly #control: MessagePort | null
  readonly #makes: boolean
  #lastId = 0

  /**
   * @param given blocks that existed when this data thread started; omitted on control
   * @param control port to control; without it, a data thread has the given blocks only
   */
  constructor(given?: SharedBlocks, control: MessagePort | null = null) {
    this.#blocks = new Map(given)
    this.#makes = given === undefined
    this.#control = control
  }

  /** Blocks that a data thread starts with. */
  get blocks(): SharedBlocks {
    return this.#blocks
  }

  /**
   * The block of that name, zeroed when new; the same block on every thread.
   * @throws Error if the block has another size or control does not respond within 5 s
   */
  block(name: string, bytes: number): SharedArrayBuffer {
    const known = this.#blocks.get(name)
    const block = known ?? (this.#makes ? new SharedArrayBuffer(bytes) : this.#request(name, bytes))
    if (block.byteLength !== bytes)
      throw new Error(`shared block ${name} has ${block.byteLength} bytes, not ${bytes}`)
    if (known === undefined) this.#blocks.set(name, block)
    return block
  }

  /** Control only: serves block requests of the data thread at the other end until that thread ends. */
  connect(port: MessagePort): void {
    port.on('message', ({ id, name, bytes, done }: BlockRequest) => {
      port.postMessage(this.#respondTo(id, name, bytes))
      const cell = new Int32Array(done)
      Atomics.store(cell, 0, 1)
      Atomics.notify(cell, 0)
    })
    port.unref()
  }

  #respondTo(id: number, name: string, bytes: number): BlockResponse {
    try {
      return { id, block: this.block(name, bytes), problem: '' }
    } catch (error) {
      return { id, block: null, problem: messageOf(error) }
    }
  }

  /** Blocks the thread: `register` is synchronous and needs the block. */
  #request(name: string, bytes: number): SharedArrayBuffer {
    const control = this.#control
    if (control === null)
      throw new Error(`shared block ${name} is unknown, and this thread has no port to control`)
    const id = ++this.#lastId
    const done = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    control.postMessage({ id, name, bytes, done } satisfies BlockRequest)
    Atomics.wait(new Int32Array(done), 0, 0, BLOCK_REQUEST_LIMIT_MS)
    for (;;) {
      const received = receiveMessageOnPort(control)?.message as BlockResponse | undefined
      if (received === undefined) throw new Error(`control did not make the shared block ${name}`)
      // A response to an earlier request that timed out.
      if (received.id !== id) continue
      if (received.block === null) throw new Error(received.problem)
      return received.block
    }
  }
}
