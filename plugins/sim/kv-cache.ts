/**
 * The key-value cache of one simulated engine, counted in blocks. A block is private to one sequence, or shared under
 * the name of its content. Shared blocks that nobody holds stay until their place is needed, least recently used first.
 */
import type { PromptText } from './prompt.ts'
import { nextTokenEnd } from './tokens.ts'

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

const FIRST_LANE = 0x811c9dc5
const SECOND_LANE = 0x9e3779b9
const FIRST_PRIME = 0x01000193
const SECOND_PRIME = 0x85ebca6b
/** Names have 53 bits: all of one lane, and the upper bits of the other. */
const UPPER_BITS = 21

/**
 * One name per full block; a last block that is not full has none. A name depends on everything before it, so it
 * stands for a whole prefix. Several prompts of one request count as one after the other.
 *
 * @param blockTokens length of a block
 */
export function blockHashes(prompts: readonly PromptText[], blockTokens: number): number[] {
  const hasher = new BlockHasher(blockTokens)
  for (const { segments } of prompts) {
    for (const { role, content } of segments) {
      hasher.mixText(role, 0, role.length)
      if (typeof content === 'string') hasher.addText(content)
      else for (const id of content) hasher.addId(id)
    }
  }
  return hasher.names
}

class BlockHasher {
  readonly names: number[] = []
  readonly #blockTokens: number
  #first = FIRST_LANE
  #second = SECOND_LANE
  #tokens = 0

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens
  }

  addText(text: string): void {
    for (let at = 0; at < text.length; ) {
      const end = nextTokenEnd(text, at)
      this.mixText(text, at, end)
      this.#endToken()
      at = end
    }
  }

  addId(id: number): void {
    this.#mix(id)
    this.#endToken()
  }

  mixText(text: string, start: number, end: number): void {
    for (let at = start; at < end; at += 1) this.#mix(text.charCodeAt(at))
  }

  #mix(value: number): void {
    this.#first = Math.imul(this.#first ^ value, FIRST_PRIME)
    this.#second = Math.imul((this.#second ^ value) + (this.#second >>> 15), SECOND_PRIME)
  }

  #endToken(): void {
    this.#tokens += 1
    if (this.#tokens % this.#blockTokens !== 0) return
    this.names.push((this.#first >>> 0) * 2 ** UPPER_BITS + (this.#second >>> (32 - UPPER_BITS)))
  }
}
