/** The blocks of an answer in the worker's format, assembled from their deltas. */

import { isObject } from '#kernel'
import { parseBoundedText } from '#shared'

type Json = Record<string, unknown>

/** An open block, and what its deltas have added. */
interface OpenBlock {
  readonly start: Readonly<Json>
  text: string
  thinking: string
  signature: string
  input: string
  citations: unknown[] | null
  /** Members that deltas of other kinds gave. */
  readonly members: Map<string, unknown>
}

export class NativeBlocks {
  readonly #open = new Map<unknown, OpenBlock>()
  readonly #done: Json[] = []

  /** Closed blocks in order, without empty texts, which services refuse, unless they hold data of the worker. */
  get content(): readonly Json[] {
    return this.#done.filter(
      ({ type, text, extra_content: data }) => type !== 'text' || text !== '' || data != null,
    )
  }

  open(index: unknown, start: Readonly<Json>): void {
    this.#open.set(index, {
      start,
      text: '',
      thinking: '',
      signature: '',
      input: '',
      citations: null,
      members: new Map(),
    })
  }

  add(index: unknown, delta: Readonly<Json>): void {
    const block = this.#open.get(index)
    if (block === undefined) return
    switch (delta.type) {
      case 'text_delta':
        block.text += textOf(delta.text)
        return
      case 'thinking_delta':
        block.thinking += textOf(delta.thinking)
        return
      case 'signature_delta':
        block.signature += textOf(delta.signature)
        return
      case 'input_json_delta':
        block.input += textOf(delta.partial_json)
        return
      case 'citations_delta':
        block.citations ??= Array.isArray(block.start.citations) ? [...block.start.citations] : []
        block.citations.push(delta.citation)
        return
      default:
        addMembers(block, delta)
    }
  }

  /** @returns the complete block; undefined if it was never opened */
  close(index: unknown): Json | undefined {
    const open = this.#open.get(index)
    if (open === undefined) return undefined
    this.#open.delete(index)
    const { start, text, thinking, signature, input, citations, members } = open
    const block = { ...start, ...Object.fromEntries(members) }
    if (text !== '') block.text = textOf(start.text) + text
    if (thinking !== '') block.thinking = textOf(start.thinking) + thinking
    if (signature !== '') block.signature = textOf(start.signature) + signature
    if (input !== '') block.input = toInput(input)
    if (citations !== null) block.citations = citations
    this.#done.push(block)
    return block
  }
}

/** Members of a delta of another kind continue texts of the block, and replace its other members. */
function addMembers({ start, members }: OpenBlock, { type: _, ...delta }: Readonly<Json>): void {
  for (const [name, value] of Object.entries(delta)) {
    const before = members.get(name) ?? start[name]
    members.set(name, typeof before === 'string' && typeof value === 'string' ? before + value : value)
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Reads the input of a call from a model's text. @returns an empty object for text that is no object */
export function toInput(text: string): object {
  try {
    const value = parseBoundedText(text)
    if (isObject(value)) return value
  } catch {}
  return {}
}
