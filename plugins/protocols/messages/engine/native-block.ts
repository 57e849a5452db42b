/** A block of an answer in the worker's format, assembled from its deltas. */
import { parseCallArguments } from '#shared'

type Json = Record<string, unknown>

export class NativeBlock {
  readonly #start: Readonly<Json>
  /** Text of the arguments. */
  #input = ''
  #citations: unknown[] | null = null
  /** Members that deltas of other kinds gave. */
  readonly #members = new Map<string, unknown>()

  constructor(start: Readonly<Json>) {
    this.#start = start
  }

  add({ type, ...members }: Readonly<Json>): void {
    if (type === 'input_json_delta') {
      if (typeof members.partial_json === 'string') this.#input += members.partial_json
    } else if (type === 'citations_delta') {
      const { citations } = this.#start
      this.#citations ??= Array.isArray(citations) ? [...citations] : []
      this.#citations.push(members.citation)
    } else for (const [name, value] of Object.entries(members)) this.#addMember(name, value)
  }

  /** A member such as `text`, `thinking` or `signature` continues a text of the block, and replaces any other value. */
  #addMember(name: string, value: unknown): void {
    const before = this.#members.get(name) ?? this.#start[name]
    if (typeof before !== 'string') this.#members.set(name, value)
    else if (typeof value === 'string') this.#members.set(name, before + value)
  }

  complete(): Json {
    const block = { ...this.#start, ...Object.fromEntries(this.#members) }
    if (this.#input !== '') block.input = parseCallArguments(this.#input)
    if (this.#citations !== null) block.citations = this.#citations
    return block
  }
}
