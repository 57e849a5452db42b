/** Parses the output of the AssemblyScript compiler into errors with positions in the format of editors. */
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

interface CompilerError {
  /** Relative to the working directory. */
  readonly file: string
  /** Both 1-based. */
  readonly line: number
  readonly column: number
  readonly level: 'error' | 'warning'
  readonly message: string
  /** The members above in one line, followed by the source line. */
  readonly text: string
}

const HEADING = /^(ERROR|WARNING|AS\d+|TS\d+)\b.*$/
const PLACE = /^\s*└─ in (.+)\((\d+),(\d+)\)\s*$/
const SOURCE = /^\s*(?:\d+)?\s*[│|]/

/**
 * @param folder of the project, prepended to relative paths
 * @returns an empty list for output in another format, such as that of cargo
 */
export function readCompilerErrors(output: string, folder: string): CompilerError[] {
  const found: CompilerError[] = []
  let heading: string[] = []
  let source: string[] = []
  for (const line of stripVTControlCharacters(output).split('\n')) {
    const place = line.match(PLACE)
    if (HEADING.test(line)) [heading, source] = [[line], []]
    else if (place !== null && heading.length > 0) {
      found.push(toError(heading.join('\n'), source, place, folder))
      // An error may have a second position.
      source = []
    } else if (SOURCE.test(line)) source.push(line)
    else if (heading.length > 0 && source.length === 0 && line.trim() !== '' && !/^\s*:/.test(line))
      heading.push(line.trim())
  }
  return found
}

function toError(
  heading: string,
  source: readonly string[],
  place: RegExpMatchArray,
  folder: string,
): CompilerError {
  const file = place[1].startsWith('~lib/') ? place[1] : join(folder, place[1])
  const line = Number(place[2])
  const column = Number(place[3])
  const level = heading.startsWith('WARNING') ? 'warning' : 'error'
  const message = heading.replace(/^(ERROR|WARNING) /, '')
  const shown = source.map((one) => `  ${one.trimEnd()}`)
  const text = [`${file}:${line}:${column}: ${level} ${message}`, ...shown].join('\n')
  return { file, line, column, level, message, text }
}
