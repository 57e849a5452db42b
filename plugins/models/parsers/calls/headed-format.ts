/** Description of a format with heads, and its compiled form. */
import type { JsonStyle } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import type { Untyped } from '../scan/typed-value.ts'
import type { OpenBody } from './body-reader.ts'
import type { JsonArgumentsRules } from './json-arguments.ts'

/** A key and the types in its header; undefined uses the schema of the tool. */
export interface PairKey {
  readonly name: string
  readonly types?: readonly string[]
}

export interface PairFormat {
  readonly open: string
  readonly keyEnd: string
  /** Null if the header names no key. */
  readonly toKey: (header: string) => PairKey | null
  /** Mark between key and value after `keyEnd`; null for none. */
  readonly valueOpen?: string
  readonly close: string
  /** Marks around a value; a closing mark between them is data. Only space may be beside them. */
  readonly verbatim?: readonly [open: string, close: string]
  /** Texts in a value, and their replacements. */
  readonly replaced?: ReadonlyMap<string, string>
  /** Keeps a line break at either end of a value. Default false: one is removed. */
  readonly isExact?: boolean
  /** Whether the tool's schema decides types; default true. */
  readonly isTyped?: boolean
  /** Values without a declared type; default `infer`. */
  readonly untyped?: Untyped
}

/** A format whose calls are `open… name … body close…`, perhaps all of them inside a section. */
export interface HeadedFormat {
  /** Marks around the calls, in one or more spellings. */
  readonly section?: readonly [open: readonly string[], close: readonly string[]]
  /** Calls outside a section count too. */
  readonly isSectionOptional?: boolean
  /** Marks before the name; space between them is allowed. */
  readonly open: readonly string[]
  /** Mark after the name, or how a name without one ends: with its line, its word, or before the next tag. */
  readonly nameEnd: string | { readonly stop: 'line' | 'word' | 'tag' }
  /** Default: trimmed. */
  readonly toName?: (header: string) => string | null
  readonly body: 'json' | 'pairs' | 'either' | 'own'
  readonly json?: JsonArgumentsRules
  /** Opens the reader of a body with its own notation. */
  readonly openBody?: OpenBody
  readonly pair?: PairFormat
  /** Optional mark before the closing ones. */
  readonly inner?: string
  readonly close: readonly string[]
  readonly style?: JsonStyle
  /** Creates the format of a section whose opening mark has a suffix up to `>`; null if it is not a valid suffix. */
  readonly suffixed?: (suffix: string) => HeadedFormat | null
}

export interface CompiledPair {
  readonly open: string
  readonly keyEnd: MarkerSearch
  readonly toKey: (header: string) => PairKey | null
  readonly valueOpen: string | null
  /** Found: 0 the end of the value, 1 another pair, else a text that is replaced. */
  readonly value: MarkerSearch
  /** By index of the text in `value`. */
  readonly replacements: readonly string[]
  readonly verbatim: { readonly open: string; readonly close: MarkerSearch } | null
  readonly isExact: boolean
  readonly isTyped: boolean
  readonly untyped: Untyped
}

export interface CompiledSuffix {
  readonly end: MarkerSearch
  readonly toFormat: (suffix: string) => CompiledHeads | null
}

export interface CompiledHeads {
  readonly section: HeadedFormat['section'] | null
  readonly open: readonly string[]
  readonly isSectionOptional: boolean
  /** Found: a call, if one may be outside a section; then a section. */
  readonly outside: MarkerSearch
  /** Found: 0 a call, else the section's end. */
  readonly inside: MarkerSearch
  readonly nameEnd: MarkerSearch | null
  readonly nameStop: 'line' | 'word' | 'tag'
  readonly toName: (header: string) => string | null
  readonly body: 'json' | 'pairs' | 'either' | 'own'
  readonly json: JsonArgumentsRules
  readonly openBody: OpenBody | null
  readonly suffix: CompiledSuffix | null
  readonly pair: CompiledPair | null
  readonly inner: string | null
  readonly close: readonly string[]
  /** A call ends with one mark, which may be missing at the end of the text. */
  readonly hasOneEnd: boolean
  /** Found: 0 another pair, 1 the end, 2 the inner mark. */
  readonly behindPair: MarkerSearch
  readonly style: JsonStyle
  readonly comma: string
  readonly colon: string
}

export function compileHeads(format: HeadedFormat): CompiledHeads {
  const { section, open, nameEnd, pair, inner, close, style = 'compact' } = format
  const call = open[0]
  const isSectionOptional = format.isSectionOptional ?? false
  return {
    section: section ?? null,
    open,
    isSectionOptional,
    outside: new MarkerSearch(
      section === undefined ? [call] : isSectionOptional ? [call, ...section[0]] : section[0],
    ),
    inside: new MarkerSearch(section === undefined ? [call] : [call, ...section[1]]),
    nameEnd: typeof nameEnd === 'string' ? new MarkerSearch([nameEnd]) : null,
    nameStop: typeof nameEnd === 'string' ? 'word' : nameEnd.stop,
    toName: format.toName ?? ((header) => header.trim()),
    body: format.body,
    json: format.json ?? { style, other: 'keep' },
    openBody: format.openBody ?? null,
    suffix: format.suffixed === undefined ? null : compileSuffix(format.suffixed),
    pair: pair === undefined ? null : compilePair(pair),
    inner: inner ?? null,
    close,
    hasOneEnd: section === undefined && inner === undefined,
    behindPair: new MarkerSearch([pair?.open ?? close[0], close[0], ...(inner === undefined ? [] : [inner])]),
    style,
    comma: style === 'spaced' ? ', ' : ',',
    colon: style === 'spaced' ? ': ' : ':',
  }
}

function compileSuffix(toFormat: (suffix: string) => HeadedFormat | null): CompiledSuffix {
  return {
    end: new MarkerSearch(['>']),
    toFormat: (suffix) => {
      const format = toFormat(suffix)
      return format === null ? null : compileHeads(format)
    },
  }
}

function compilePair(pair: PairFormat): CompiledPair {
  const { open, close, verbatim, replaced = new Map<string, string>() } = pair
  return {
    open,
    keyEnd: new MarkerSearch([pair.keyEnd]),
    toKey: pair.toKey,
    valueOpen: pair.valueOpen ?? null,
    value: new MarkerSearch([close, open, ...replaced.keys()]),
    replacements: ['', '', ...replaced.values()],
    verbatim: verbatim === undefined ? null : { open: verbatim[0], close: new MarkerSearch([verbatim[1]]) },
    isExact: pair.isExact ?? false,
    isTyped: pair.isTyped ?? true,
    untyped: pair.untyped ?? 'infer',
  }
}
