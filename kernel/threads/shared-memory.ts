/** Memory that all threads of the gateway see: control makes every block, data threads are born with them or ask for more. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

/** Shared blocks by name. */
export type SharedBlocks = ReadonlyMap<string, SharedArrayBuffer>

/** How long a data thread stands still for control's answer before it gives up. */
const ANSWER_LIMIT_MS = 5_000

/** What a data thread sends; it waits on the first cell of `done`. */
interface Question {
  readonly id: number
  readonly name: string
  readonly bytes: number
  readonly done: SharedArrayBuffer
}

interface Answer {
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
   * @param given blocks that there were when this data thread began; left out on control itself
   * @param control where control answers; without one, a data thread has what it was given
   */
  constructor(given?: SharedBlocks, control: MessagePort | null = null) {
    this.#blocks = new Map(given)
    this.#makes = given === undefined
    this.#control = control
  }

  /** What data threads are started with. */
  get blocks(): SharedBlocks {
    return this.#blocks
  }

  /**
   * The block of that name, zeroed when new; the same for every thread, whoever asks first and whenever.
   * @throws Error when the block has another size, or control does not answer
   */
  block(name: string, bytes: number): SharedArrayBuffer {
    const known = this.#blocks.get(name)
    const block = known ?? (this.#makes ? new SharedArrayBuffer(bytes) : this.#ask(name, bytes))
    if (block.byteLength !== bytes)
      throw new Error(`shared block ${name} has ${block.byteLength} bytes, not ${bytes}`)
    if (known === undefined) this.#blocks.set(name, block)
    return block
  }

  /** Control only: answers what the data thread at the other end asks, until that thread ends. */
  answer(port: MessagePort): void {
    port.on('message', ({ id, name, bytes, done }: Question) => {
      port.postMessage(this.#answerTo(id, name, bytes))
      const cell = new Int32Array(done)
      Atomics.store(cell, 0, 1)
      Atomics.notify(cell, 0)
    })
    port.unref()
  }

  #answerTo(id: number, name: string, bytes: number): Answer {
    try {
      return { id, block: this.block(name, bytes), problem: '' }
    } catch (error) {
      return { id, block: null, problem: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Stands still until control has answered: who asks needs the block to go on. */
  #ask(name: string, bytes: number): SharedArrayBuffer {
    const control = this.#control
    if (control === null) throw new Error(`shared block ${name} is not known, and control cannot be asked`)
    const id = ++this.#lastId
    const done = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    control.postMessage({ id, name, bytes, done } satisfies Question)
    Atomics.wait(new Int32Array(done), 0, 0, ANSWER_LIMIT_MS)
    for (;;) {
      const received = receiveMessageOnPort(control)?.message as Answer | undefined
      if (received === undefined) throw new Error(`control did not make the shared block ${name}`)
      // An answer that came after its limit is passed over.
      if (received.id !== id) continue
      if (received.block === null) throw new Error(received.problem)
      return received.block
    }
  }
}
