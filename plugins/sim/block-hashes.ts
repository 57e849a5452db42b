/** Names the blocks of a prompt, so that two prompts with the same beginning have the same first names. */
import type { PromptText } from './prompt.ts'
import { nextTokenEnd } from './tokens.ts'

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
