/**
 * KV cache of one simulated engine, counted in blocks. A block is private to one sequence, or shared by the hash of its
 * content. Unused shared blocks stay until they are evicted, least recently used first.
 */
import type { PromptText } from './prompt.ts'
import { nextTokenEnd } from './tokens.ts'

export class KvCache {
  readonly capacity: number
  /** Number of users of each shared block in use, by hash. */
  readonly #held = new Map<number, number>()
  /** Unused shared blocks; the first is the least recently used. */
  readonly #idle = new Set<number>()
  #private = 0
  /** Blocks evicted so far. */
  evictions = 0

  /** @param capacity blocks, at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity
  }

  /** Blocks used by sequences. */
  get used(): number {
    return this.#held.size + this.#private
  }

  /** Unused shared blocks. */
  get idle(): number {
    return this.#idle.size
  }

  /** @returns how many of the first blocks are cached, at most `limit` */
  match(names: readonly number[], limit: number): number {
    let hits = 0
    while (hits < limit && hits < names.length && this.#has(names[hits])) hits += 1
    return hits
  }

  /**
   * Allocates the blocks of one sequence: the first `hits` are shared, the others new and private.
   *
   * @param hits result of `match`
   * @returns false, with nothing changed, if there is no room
   */
  claim(names: readonly number[], hits: number, fresh: number): boolean {
    let woken = 0
    for (let index = 0; index < hits; index += 1) if (this.#idle.has(names[index])) woken += 1
    if (fresh > this.capacity - this.used - woken) return false
    for (let index = 0; index < hits; index += 1) this.#hold(names[index])
    this.#private += fresh
    this.#evict()
    return true
  }

  /** Shares a computed private block. @returns false if the hash exists already: the block stays private */
  publish(name: number): boolean {
    if (this.#has(name)) return false
    this.#private -= 1
    this.#held.set(name, 1)
    return true
  }

  /** Releases the blocks of a sequence. The end of a prefix is evicted before its beginning. */
  release(shared: readonly number[], privateBlocks: number): void {
    this.#private -= privateBlocks
    for (let index = shared.length - 1; index >= 0; index -= 1) this.#release(shared[index])
  }

  /** Drops unused shared blocks. */
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

  #release(name: number): void {
    const holders = this.#held.get(name) ?? 0
    if (holders > 1) {
      this.#held.set(name, holders - 1)
      return
    }
    this.#held.delete(name)
    this.#idle.add(name)
  }

  #evict(): void {
    for (const name of this.#idle) {
      if (this.used + this.#idle.size <= this.capacity) return
      this.#idle.delete(name)
      this.evictions += 1
    }
  }
}

const FIRST_LANE = 0x811c9dc5
const SECOND_LANE = 0x9e3779b9
const FIRST_PRIME = 0x01000193
const SECOND_PRIME = 0x85ebca6b
/** Hashes have 53 bits: all of one lane, and the upper bits of the other. */
const UPPER_BITS = 21

/**
 * One hash per full block. A hash covers everything before it, so it identifies a whole prefix. Several prompts of one
 * request are concatenated.
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
