/** Reads TypeScript as far as the architecture tests need: code without comments, strings and regular expressions, and imports. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Top folder of the project, with a slash at the end. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface StringLiteral {
  /** Index of the opening quote. */
  readonly start: number
  readonly value: string
}

export interface Scan {
  /** Same length and lines as the text; comments and contents of strings and regular expressions are blanks. */
  readonly code: string
  /** Quoted strings and templates without substitutions. */
  readonly strings: readonly StringLiteral[]
  /** Indexes of regular expression literals. */
  readonly patterns: readonly number[]
}

export interface Import {
  readonly specifier: string
  /** Only types are imported, so nothing is loaded. */
  readonly isType: boolean
  readonly line: number
}

/** AssemblyScript looks like TypeScript, but resolves imports differently. */
const isGuest = (file: string) => file.includes('/assembly/')

/** Paths of the sources, relative to the top folder; tests only on request. */
export function sourceFiles(patterns: readonly string[], options: { tests?: boolean } = {}): string[] {
  const files = globSync([...patterns], { cwd: ROOT, exclude: (name) => name.includes('node_modules') })
  return files
    .filter(
      (file) =>
        !isGuest(file) && !file.endsWith('.d.ts') && (options.tests === true || !file.endsWith('.test.ts')),
    )
    .sort()
}

export function readSource(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}

export function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length
}

/** After these, a slash begins a regular expression; otherwise it is a division. */
const BEFORE_PATTERN =
  /(^|[([{,;=:!&|?+\-*%~^<>}]|\b(return|typeof|case|in|of|do|else|void|throw|await|yield))$/

export function scan(text: string): Scan {
  const code = [...text.split('')]
  const strings: StringLiteral[] = []
  const patterns: number[] = []
  /** Depth of braces at which each open template substitution ends. */
  const templates: number[] = []
  let depth = 0
  let at = 0

  const blank = (from: number, to: number) => {
    for (let i = from; i < to; i++) if (code[i] !== '\n') code[i] = ' '
  }
  const endOf = (from: number, stops: (i: number) => boolean) => {
    let i = from
    while (i < text.length && !stops(i)) i += text[i] === '\\' ? 2 : 1
    return i
  }
  /** From after the opening backtick or a closing brace, to the end of the text part. */
  const template = (from: number, start: number) => {
    const end = endOf(from, (i) => text[i] === '`' || text.startsWith('${', i))
    blank(from, end)
    if (text[end] === '`') {
      if (text[start] === '`') strings.push({ start, value: text.slice(from, end) })
      return end + 1
    }
    templates.push(depth++)
    return end + 2
  }

  while (at < text.length) {
    const char = text[at]
    if (text.startsWith('//', at) || (at === 0 && text.startsWith('#!'))) {
      const end = endOf(at, (i) => text[i] === '\n')
      blank(at, end)
      at = end
    } else if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2) + 2
      blank(at, end)
      at = end
    } else if (char === "'" || char === '"') {
      const end = endOf(at + 1, (i) => text[i] === char)
      strings.push({ start: at, value: text.slice(at + 1, end) })
      blank(at + 1, end)
      at = end + 1
    } else if (char === '`') at = template(at + 1, at)
    else if (char === '}' && templates.at(-1) === depth - 1) {
      depth = templates.pop() ?? 0
      at = template(at + 1, at)
    } else if (
      char === '/' &&
      BEFORE_PATTERN.test(
        code
          .slice(Math.max(0, at - 40), at)
          .join('')
          .trimEnd(),
      )
    ) {
      let isClass = false
      const end = endOf(at + 1, (i) => {
        if (text[i] === '[') isClass = true
        if (text[i] === ']') isClass = false
        return text[i] === '/' && !isClass
      })
      patterns.push(at)
      blank(at, end + 1)
      at = end + 1
    } else {
      if (char === '{') depth++
      if (char === '}') depth--
      at++
    }
  }
  return { code: code.join(''), strings, patterns }
}

/** Every static and dynamic import and re-export with a literal specifier. */
export function importsOf(text: string): Import[] {
  const { code, strings } = scan(text)
  return strings.flatMap(({ start, value }) => {
    const before = code.slice(0, start).trimEnd()
    const line = lineOf(text, start)
    if (/\bimport(\s*\()?$/.test(before)) return [{ specifier: value, isType: false, line }]
    if (!/\bfrom$/.test(before)) return []
    const begin = Math.max(before.lastIndexOf('import '), before.lastIndexOf('export '))
    if (begin < 0) return []
    return [{ specifier: value, isType: isTypeOnly(before.slice(begin)), line }]
  })
}

/** @param statement `import … from`, without its specifier */
function isTypeOnly(statement: string): boolean {
  if (/^(import|export)\s+type\b/.test(statement)) return true
  const names = statement.match(/^(?:import|export)\s*\{([^}]*)\}\s*from$/)?.[1].split(',')
  return names?.filter((name) => name.trim() !== '').every((name) => name.trim().startsWith('type ')) ?? false
}
