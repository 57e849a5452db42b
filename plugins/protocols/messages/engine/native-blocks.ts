/** The blocks of an answer in the worker's format, assembled from their deltas. */
import { parseCallArguments } from '#shared'

type Json = Record<string, unknown>

/** An open block, and what its deltas have added. */
interface OpenBlock {
  readonly start: Readonly<Json>
  /** Text of the arguments. */
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
    this.#open.set(index, { start, input: '', citations: null, members: new Map() })
  }

  add(index: unknown, delta: Readonly<Json>): void {
    const block = this.#open.get(index)
    if (block === undefined) return
    switch (delta.type) {
      case 'input_json_delta':
        if (typeof delta.partial_json === 'string') block.input += delta.partial_json
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
    const { start, input, citations, members } = open
    const block = { ...start, ...Object.fromEntries(members) }
    if (input !== '') block.input = parseCallArguments(input)
    if (citations !== null) block.citations = citations
    this.#done.push(block)
    return block
  }
}

/** Members of a delta, such as `text`, `thinking` and `signature`, continue texts of the block, and replace other members. */
function addMembers({ start, members }: OpenBlock, { type: _, ...delta }: Readonly<Json>): void {
  for (const [name, value] of Object.entries(delta)) {
    const before = members.get(name) ?? start[name]
    if (typeof before !== 'string') members.set(name, value)
    else if (typeof value === 'string') members.set(name, before + value)
  }
}
