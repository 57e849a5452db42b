/** Patterns of response templates match like Python's library, for any split of the text. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileLiterals, compilePattern, type PatternProgram } from './pattern-program.ts'
import { allMatches, type PatternMatch, PatternRun, STREAM_LIMITS } from './pattern-run.ts'

type Row = readonly [pattern: string, text: string, found: readonly [number, number, object] | null]
const goldens = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/parsers/template-patterns.json', import.meta.url), 'utf8'),
) as Row[]

function plain(match: PatternMatch | number): unknown {
  return typeof match === 'number' ? null : [match.start, match.end, Object.fromEntries(match.groups)]
}

function search(program: PatternProgram, text: string): unknown {
  return plain(new PatternRun(program).advance({ text, base: 0, isEnd: true }))
}

/** A result that was final early must not change. */
function searchPieces(program: PatternProgram, pieces: readonly string[]): unknown {
  const run = new PatternRun(program)
  let text = ''
  for (const piece of pieces) {
    text += piece
    const match = run.advance({ text, base: 0, isEnd: false })
    if (typeof match !== 'number') return plain(match)
    expect(match).toBeLessThanOrEqual(text.length)
  }
  return plain(run.advance({ text, base: 0, isEnd: true }))
}

test.each(goldens)('hf: %j in %j', (pattern, text, found) => {
  const program = compilePattern(pattern)
  expect(search(program, text)).toEqual(found)
  expect(searchPieces(program, [...text])).toEqual(found)
})

const atoms = fc.constantFrom(
  'a',
  'b',
  '<',
  '\\n',
  '\\s',
  '\\w',
  '.',
  '[^<]',
  '[ab]',
  '\\d',
  'é',
  '\\S',
  '^',
  '$',
  '\\Z',
)
const repeats = fc.constantFrom('', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{1,2}')
const { pattern: patterns } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
  pattern: fc.array(tie('part'), { maxLength: 4 }).map((parts) => parts.join('')),
  part: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(atoms, repeats).map(([atom, repeat]) => (/^(?:\^|\$|\\Z)$/.test(atom) ? atom : atom + repeat)),
    fc.tuple(tie('pattern'), tie('pattern'), repeats).map(([a, b, repeat]) => `(?:${a}|${b})${repeat}`),
  ),
}))
/** Nested repeats exceed the size limit of a program. */
const small = patterns.filter((source) => source.length <= 60)
const texts = fc.string({ unit: fc.constantFrom('a', 'b', '<', '\n', ' ', 'é', '1', '😀'), maxLength: 16 })

test('matches do not depend on the split of the text', () => {
  fc.assert(
    fc.property(small, texts, fc.infiniteStream(fc.integer({ min: 1, max: 4 })), (source, text, sizes) => {
      const program = compilePattern(source)
      const characters = [...text]
      const pieces: string[] = []
      for (const size of sizes) {
        if (characters.length === 0) break
        pieces.push(characters.splice(0, size).join(''))
      }
      expect(searchPieces(program, pieces)).toEqual(search(program, text))
    }),
    { numRuns: 1_000 },
  )
})

test('of several literals at one position the longest wins, once it is certain', () => {
  const program = compileLiterals(['<t', '<tt>'])
  expect(searchPieces(program, ['x<t', 't', '>'])).toEqual([1, 5, {}])
  expect(searchPieces(program, ['x<t', 't', 'y'])).toEqual([1, 3, {}])
})

test('matches do not overlap, and an empty match occurs once per position', () => {
  const found = [...allMatches(compilePattern('a*|b'), 'aab')].map(({ start, end }) => [start, end])
  expect(found).toEqual([
    [0, 2],
    [2, 3],
  ])
})

describe('is rejected, with the position and the reason', () => {
  test.each([
    ['(?!a)', 'at character 4 there is (?!, which is not known here'],
    ['(?=a)b', 'it has a look-ahead (?= that is not at its end'],
    ['(?:(?=a)|b)*', 'it has a look-ahead (?= that is not at its end'],
    ['(?<!a)b', 'at character 4 there is (?<, which is not known here'],
    ['(?P=x)', 'at character 4 there is (?P, which is not known here'],
    ['(?i)a', 'at character 4 there is (?i, which is not known here'],
    ['(a)\\1', 'at character 6 there is \\1, which is not known here'],
    ['\\bword', 'at character 3 there is \\b, which is not known here'],
    ['a++', 'at character 3 there is a possessive repeat, which is not known here'],
    ['*a', 'at character 2 there is a * that repeats nothing'],
    ['a**', 'at character 3 there is a repeat of a repeat'],
    ['a{3,2}', 'at character 7 there is a repeat of 3 to 2 times'],
    ['(a', 'at character 3 there is a ( that nothing closes'],
    ['a)', 'at character 2 there is a ) that closes nothing'],
    ['[b-a]', 'at character 5 there is a range of characters that is none'],
    ['[ab', 'at character 4 there is an end where something must follow'],
    ['\\x4', 'at character 3 there is \\x without its 2 digits'],
    ['(?P<a b>x)', 'at character 9 there is a group without a proper name'],
    ['(?P<a>x)(?P<a>y)', 'at character 15 there is two groups of the name a'],
    ['(?:a{100}){100}', 'it has more than 512 steps'],
    ['('.repeat(40), 'at character 33 there is groups more than 32 deep'],
    ['a'.repeat(5_000), 'it is longer than 4096 characters'],
  ])('%s', (source, reason) => {
    expect(() => compilePattern(source)).toThrow(reason)
  })
})

test('patterns with exponential backtracking take linear time', () => {
  const program = compilePattern('(?:a|a)*(?:a*)*(?:a+)+b')
  expect(search(program, 'a'.repeat(20_000))).toBeNull()
})

test('a match that may grow is ended at a limit, for any split of the text', () => {
  const program = compilePattern('a(?:.*b)?')
  const text = `${'a'.repeat(1_000)}b`
  expect(search(program, text)).toEqual([0, 1, {}])
  expect(searchPieces(program, [...text])).toEqual([0, 1, {}])
  expect(search(program, 'aaab')).toEqual([0, 4, {}])
})

test('in a complete text matches may be long, but the work is limited', () => {
  const long = `<${'x'.repeat(50_000)}>`
  expect([...allMatches(compilePattern('<.*?>'), long)]).toHaveLength(1)
  expect(() => [...allMatches(compilePattern('a(?:.*b)?'), 'a'.repeat(65_536))]).toThrow('too many steps')
})

test('repeats of an empty pattern are removed', () => {
  expect(compilePattern('(?:(?:(?:(?:){999}){999}){999}){999}a').code).toHaveLength(2)
})

test('a match beyond the length limit is dropped, for any split of the text', () => {
  const program = compilePattern('<.*?>')
  const text = `<${'x'.repeat(STREAM_LIMITS.maxMatch)}> <y>`
  const found = [text.length - 3, text.length, {}]
  expect(search(program, text)).toEqual(found)
  expect(searchPieces(program, [...text])).toEqual(found)
})
