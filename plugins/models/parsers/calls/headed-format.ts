/** Description of a format whose calls begin with the name of the tool. */
import { MarkerSearch } from '../scan/marker-search.ts'
import type { CallOutput } from './call-output.ts'

/** Reads the arguments of one call, piece by piece. */
export interface BodyReader {
  /** `RUNNING`, `DONE` or `FAILED`, as of `JsonScanner`. */
  readonly status: number
  /**
   * Starts the call once the text is certainly a call, and writes its arguments.
   * @param isEnd the text is complete
   * @returns the end of the decided text, which is before the marks that close the call; the rest is passed again
   */
  feed(text: string, from: number, isEnd: boolean): number
}

/** @param firstCode code of the first character of the arguments */
export type OpenBody = (out: CallOutput, tool: string, firstCode: number) => BodyReader

/** The marks of a format whose calls are `open… name … body close…`, perhaps all of them inside a section. */
export interface Heads {
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
  /** Each of them may be missing. */
  readonly close: readonly string[]
  /** Creates the format of a section whose opening mark has a suffix up to `>`; null if it is not a valid suffix. */
  readonly suffixed?: (suffix: string) => HeadedFormat | null
}

export interface HeadedFormat extends Heads {
  readonly body: OpenBody
}

export interface CompiledHeads {
  readonly format: HeadedFormat
  /** Found: a call, if one may be outside a section; then a section. */
  readonly outside: MarkerSearch
  /** Found: 0 a call, else the section's end. */
  readonly inside: MarkerSearch
  readonly nameMark: MarkerSearch | null
}

export function compileHeads(format: HeadedFormat): CompiledHeads {
  const { section, isSectionOptional = false, open, nameEnd } = format
  const call = open[0]
  const [begins, ends] = section ?? [[], []]
  return {
    format,
    outside: new MarkerSearch(section === undefined || isSectionOptional ? [call, ...begins] : begins),
    inside: new MarkerSearch([call, ...ends]),
    nameMark: typeof nameEnd === 'string' ? new MarkerSearch([nameEnd]) : null,
  }
}
