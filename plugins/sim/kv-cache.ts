/**
 * The key-value cache of one simulated engine, counted in blocks. A block is private to one sequence, or shared under
 * the name of its content. Shared blocks that nobody holds stay until their place is needed, least recently used first.
 */
export class KvCache {
  readonly capacity: number
  /** Shared blocks in use: name and holders. */
  readonly #held = new Map<number, number>()
  /** Shared blocks that nobody holds; the first is the least recently used. */
  readonly #idle = new Set<number>()
  #private = 0
  #evictions = 0

  /** @param capacity blocks, at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity
  }

  /** Blocks that sequences hold. */
  get used(): number {
    return this.#held.size + this.#private
  }

  /** Blocks kept for their content alone. */
  get idle(): number {
    return this.#idle.size
  }

  /** Blocks thrown out so far to make room. */
  get evictions(): number {
    return this.#evictions
  }

  /** @returns how many of the first names are here, at most `limit` */
  match(names: readonly number[], limit: number): number {
    let hits = 0
    while (hits < limit && hits < names.length && this.#has(names[hits])) hits += 1
    return hits
  }

  /**
   * Takes the blocks of one sequence: the first `hits` by name, the others new and private.
   *
   * @param hits as `match` told
   * @returns false, with nothing changed, when there is no room
   */
  claim(names: readonly number[], hits: number, fresh: number): boolean {
    let woken = 0
    for (let index = 0; index < hits; index += 1) if (this.#idle.has(names[index])) woken += 1
    if (fresh > this.capacity - this.used - woken) return false
    for (let index = 0; index < hits; index += 1) this.#hold(names[index])
    this.#private += fresh
    this.#makeRoom()
    return true
  }

  /** A private block is computed and gets its name. @returns false when the name exists: the block stays private */
  publish(name: number): boolean {
    if (this.#has(name)) return false
    this.#private -= 1
    this.#held.set(name, 1)
    return true
  }

  /** Gives back what a sequence held. The end of a prefix goes before its beginning when room is needed. */
  release(shared: readonly number[], privateBlocks: number): void {
    this.#private -= privateBlocks
    for (let index = shared.length - 1; index >= 0; index -= 1) this.#letGo(shared[index])
  }

  /** Forgets the content that nobody holds. */
  flush(): void {
    this.#idle.clear()
  }

  #has(name: number): boolean {
    return this.#held.has(name) || this.#idle.has(name)
  }

  #hold(name: number): void {
    this.#idle.delete(name)
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
  }

  #letGo(name: number): void {
    const holders = this.#held.get(name) ?? 0
    if (holders > 1) {
      this.#held.set(name, holders - 1)
      return
    }
    this.#held.delete(name)
    this.#idle.add(name)
  }

  #makeRoom(): void {
    for (const name of this.#idle) {
      if (this.used + this.#idle.size <= this.capacity) return
      this.#idle.delete(name)
      this.#evictions += 1
    }
  }
}
