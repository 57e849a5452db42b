/** Where workers, clients and modules are read: nothing that their numbers of things, or their names, could break. */
import { expect, test } from 'vitest'
import { lineOf, readSource, scan, sourceFiles } from './source-scan.ts'

/** All but the command, whose user says what it reads. */
const files = sourceFiles(['kernel/**/*.ts', 'plugins/**/*.ts'])
  .filter((file) => !file.startsWith('plugins/cli/') && !file.includes('/fixtures/'))
  .map((file) => ({ file, text: readSource(file) }))

/** Calls that take a list as well as its elements. */
const CALL = /\b(?:Math\.(?:max|min)|push|unshift|splice|concat|fromCharCode|fromCodePoint)\(/g
/** A name such as `constructor` finds what nobody put there. */
const TABLE_OF_WORDS = /^(?:export )?const \w+: Readonly<Record<string,/gm

/** Text of the line → why it is safe. */
const KNOWN: Readonly<Record<string, string>> = {
  'if (headers !== undefined) all.push(...headers)': 'headers of a reply made here',
  'this.largestTier = Math.max(...Object.values(this.#routes).map(largestTier))': 'three legs',
  'maxReplyBytes: Math.max(': 'hooks of plugins',
  'this.waiting.unshift(...batch.slice(items.length))': 'a batch of 64 at most',
  'this.waiting.unshift(...batch.filter((_, place) => place !== culprit))': 'a batch of 16 at most',
  'const SUFFIXES: Readonly<Record<string, readonly string[]>> = {': 'read by Object.entries only',
  'const COLOR: Readonly<Record<string, string>> = {': 'levels of our own log',
  'const NUMBERS: Readonly<Record<string, (value: number) => Partial<Fault>>> = {':
    'asked by Object.hasOwn first',
  'const FLAGS: Readonly<Record<string, Partial<Fault>>> = {': 'asked by Object.hasOwn first',
  "const FOLDED: Readonly<Record<string, string>> = { s: '\\u017f', k: '\\u212a' }": 'asked by one letter',
  'const CONSTANTS: Readonly<Record<string, unknown>> = {': 'read by Object.entries only',
  'const FIELDS: Readonly<Record<string, (at: Date) => string>> = {': 'asked by one letter',
  'const BINARY: Readonly<Record<string, string>> = {': 'operators of the template parser',
  'export const METHODS: Readonly<Record<string, Method>> = {': 'asked by names that are among its keys',
  'const TESTS: Readonly<Record<string, (value: Value, operand: Value) => boolean>> = {':
    'asked by Object.hasOwn first',
  'export const FILTERS: Readonly<Record<string, Filter>> = {': 'asked by names that are among its keys',
  'const HARMONY: Readonly<Record<string, number>> = {': 'read by Object.entries only',
  "export const EXCHANGE_FUNCTIONS: Readonly<Record<string, Pick<FunctionCode, 'parameters' | 'results'>>> = {":
    'asked by names of the interface',
}

/** Whether one of the call's own arguments is a list that is spread; what stands in brackets inside of it is not. */
function spreads(code: string, from: number): boolean {
  let depth = 0
  for (let at = from; at < code.length; at++) {
    if ('([{'.includes(code[at])) depth++
    else if (')]}'.includes(code[at])) {
      if (depth-- === 0) return false
    } else if (depth === 0 && code.startsWith('...', at)) return true
  }
  return false
}

const spreadCalls = (code: string) =>
  [...code.matchAll(CALL)]
    .filter((match) => spreads(code, match.index + match[0].length))
    .map(({ index }) => index)

const tablesOfWords = (code: string) => [...code.matchAll(TABLE_OF_WORDS)].map(({ index }) => index)

function findings(find: (code: string) => number[]): string[] {
  return files.flatMap(({ file, text }) =>
    find(scan(text).code).flatMap((index) => {
      const line = text.split('\n')[lineOf(text, index) - 1].trim()
      return Object.hasOwn(KNOWN, line) ? [] : [`${file}:${lineOf(text, index)} ${line}`]
    }),
  )
}

test('no list is spread into the arguments of a call', () => {
  expect(findings(spreadCalls)).toEqual([])
})

test('lists that are spread are found wherever they stand, and no others', () => {
  for (const code of [
    'Math.max(...a)',
    'Math.max(0, ...a.map((b) => c(b)))',
    'a.push(b(1), ...c)',
    'a.splice(0, 1,\n...b)',
  ])
    expect(spreadCalls(code)).toHaveLength(1)
  for (const code of ['a.push({ b, ...c })', 'a.push([...b])', 'a.push(b(...c))', 'a.push(b), c(...d)'])
    expect(spreadCalls(code)).toEqual([])
})

test('tables that are asked by a word are maps', () => {
  expect(findings(tablesOfWords)).toEqual([])
})

test('the list of exceptions holds nothing that is gone', () => {
  const all = files.map(({ text }) => text).join('\n')
  expect(Object.keys(KNOWN).filter((line) => !all.includes(line))).toEqual([])
})
