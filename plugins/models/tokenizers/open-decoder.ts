/**
 * @hot
 * The decoder that other plugins get: ids to text, and the stops that end it.
 */
import type { DecoderOptions, TokenDecoder } from '#kernel'
import { StopSearch } from '#shared'
import type { DecoderRules } from './decoder-rules.ts'
import { IdDecoder } from './id-decoder.ts'
import type { TokenTable } from './token-table.ts'

export function openDecoder(
  table: TokenTable,
  rules: DecoderRules,
  options: DecoderOptions = {},
): TokenDecoder {
  return new StoppingDecoder(table, rules, options)
}

class StoppingDecoder implements TokenDecoder {
  readonly #decoder: IdDecoder
  readonly #search: StopSearch | null
  readonly #stopIds: ReadonlySet<number>
  readonly #includesStop: boolean
  matchedStop: string | number | null = null

  constructor(table: TokenTable, rules: DecoderRules, options: DecoderOptions) {
    const { stops = [], stopIds = [], includeStop = false } = options
    this.#decoder = new IdDecoder(table, rules, {
      skipSpecialTokens: options.skipSpecialTokens ?? true,
      spacesBetweenSpecialTokens: options.spacesBetweenSpecialTokens ?? false,
      isContinuation: options.isContinuation ?? false,
    })
    this.#search = stops.some((stop) => stop !== '') ? new StopSearch(stops, includeStop) : null
    this.#stopIds = new Set(stopIds)
    this.#includesStop = includeStop
  }

  push(id: number): string {
    if (this.matchedStop !== null) return ''
    if (this.#stopIds.has(id)) return this.#stopAt(id)
    return this.#searched(this.#decoder.push(id))
  }

  end(): string {
    if (this.matchedStop !== null) return ''
    const text = this.#searched(this.#decoder.end())
    return this.matchedStop === null && this.#search !== null ? text + this.#search.end() : text
  }

  /** A stop id: what was held back is text after all, and the id itself is if it is to be seen. */
  #stopAt(id: number): string {
    const text = this.#includesStop ? this.#searched(this.#decoder.push(id)) : ''
    const rest = this.end()
    this.matchedStop ??= id
    return text + rest
  }

  #searched(text: string): string {
    if (this.#search === null || text === '') return text
    const certain = this.#search.push(text)
    this.matchedStop = this.#search.matched
    return certain
  }
}
