/** Memory that all threads of the gateway see: made by control while it boots, handed to every data thread. */

/** Shared blocks by name. */
export type SharedBlocks = ReadonlyMap<string, SharedArrayBuffer>

export class SharedMemory {
  readonly #blocks: Map<string, SharedArrayBuffer>
  readonly #mayMake: boolean

  /** @param given the blocks that control made; left out on control itself */
  constructor(given?: SharedBlocks) {
    this.#blocks = new Map(given)
    this.#mayMake = given === undefined
  }

  /** What data threads are started with. */
  get blocks(): SharedBlocks {
    return this.#blocks
  }

  /**
   * The block of that name, zeroed when new. Every thread asks for the same blocks while it boots.
   * @throws Error when a data thread asks for a block that control did not, or for another size
   */
  block(name: string, bytes: number): SharedArrayBuffer {
    const known = this.#blocks.get(name)
    if (known !== undefined) {
      if (known.byteLength !== bytes)
        throw new Error(`shared block ${name} has ${known.byteLength} bytes, not ${bytes}`)
      return known
    }
    if (!this.#mayMake) throw new Error(`shared block ${name} was not made by control at boot`)
    const made = new SharedArrayBuffer(bytes)
    this.#blocks.set(name, made)
    return made
  }
}
