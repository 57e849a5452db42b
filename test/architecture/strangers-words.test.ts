/** Where workers, clients and modules are read: nothing that their numbers of things, or their names, could break. */
import { expect, test } from 'vitest'
import { lineOf, readSource, scan, sourceFiles } from './source-scan.ts'

const files = sourceFiles([
  'kernel/{balance,errors,http,observe,upstream,wire}/**/*.ts',
  'plugins/{auth,contracts,debug,generations,health,http-workers,limits,metrics,proxy,workers}/**/*.ts',
]).map((file) => ({ file, text: readSource(file) }))

/** Each element becomes an argument, and some hundred thousand of them end the stack. */
const SPREAD_CALL = /\b(?:Math\.(?:max|min)|push|unshift|splice|fromCharCode)\((?:[^()]|\([^()]*\))*\.\.\./g
/** A name such as `constructor` finds what nobody put there. */
const TABLE_OF_WORDS = /^(?:export )?const \w+: Readonly<Record<string,/gm

/** Text of the line → why it is safe. */
const KNOWN: Readonly<Record<string, string>> = {
  'if (headers !== undefined) all.push(...headers)': 'headers of a reply made here',
  'this.largestTier = Math.max(...Object.values(this.#routes).map(largestTier))': 'three legs',
  'const SUFFIXES: Readonly<Record<string, readonly string[]>> = {': 'read by Object.entries only',
  'const COLOR: Readonly<Record<string, string>> = {': 'levels of our own log',
}

function findings(pattern: RegExp): string[] {
  return files.flatMap(({ file, text }) => {
    const { code } = scan(text)
    return [...code.matchAll(pattern)].flatMap((match) => {
      // An object spread is no list of arguments.
      if (/\{\s*\.\.\.$/.test(match[0])) return []
      const line = text.split('\n')[lineOf(text, match.index) - 1].trim()
      return KNOWN[line] === undefined ? [`${file}:${lineOf(text, match.index)} ${line}`] : []
    })
  })
}

test('no list is spread into the arguments of a call', () => {
  expect(findings(SPREAD_CALL)).toEqual([])
})

test('tables that are asked by a word are maps', () => {
  expect(findings(TABLE_OF_WORDS)).toEqual([])
})

test('the list of exceptions holds nothing that is gone', () => {
  const all = files.map(({ text }) => text).join('\n')
  expect(Object.keys(KNOWN).filter((line) => !all.includes(line))).toEqual([])
})
