/** The built-in encoder compared with the native library: equal ids for any text, in linear time. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { openFrom } from '../../../../test/support/loaded-tokenizer.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { tokenizerPart } from '../../../../test/support/tokenizer-parts.ts'
import { PLAIN_RULES } from '../decoder-rules.ts'
import { IdDecoder } from '../id-decoder.ts'
import { jsonMember, jsonMembers } from '../json-members.ts'
import type { MarkerToken } from '../segments.ts'
import { TokenTable } from '../token-table.ts'
import { toNfc } from './nfc.ts'
import { type ReadBpe, readBpe } from './read-bpe.ts'
import { toWordPattern } from './word-pattern.ts'

const require = createRequire(import.meta.url)
const { Tokenizer } = require('tokenizers') as typeof import('tokenizers')
const SAMPLE = fileURLToPath(new URL('../sample/tokenizer.json', import.meta.url))

function openFile(file: string): ReadBpe | null {
  const bytes = readFileSync(file)
  const members = jsonMembers(bytes)
  return readBpe(bytes, members, jsonMember(bytes, members, 'added_tokens') as MarkerToken[])
}

/**
 * Characters new in Unicode 17 (code points, both ends included), all that are known to differ: letters, marks
 * and signs for Node's ICU, but not for the library, whose tables are those of Unicode 16.
 */
const NEW_CHARACTERS: readonly (readonly [number, number])[] = [
  [0x1acf, 0x1add],
  [0x1ae0, 0x1aeb],
  [0x20c1, 0x20c1],
  [0x2b96, 0x2b96],
  [0xa7ce, 0xa7cf],
  [0xa7d2, 0xa7d2],
  [0xa7d4, 0xa7d4],
  [0xa7f1, 0xa7f1],
  [0xfbc3, 0xfbd2],
  [0xfd90, 0xfd91],
  [0xfdc8, 0xfdce],
  [0x10940, 0x10959],
  [0x10ec5, 0x10ec7],
  [0x10ed0, 0x10ed8],
  [0x10efa, 0x10efb],
  [0x11b60, 0x11b67],
  [0x11db0, 0x11ddb],
  [0x16ea0, 0x16eb8],
  [0x16ebb, 0x16ed3],
  [0x16ff2, 0x16ff3],
  [0x187f8, 0x187ff],
  [0x18d09, 0x18d1e],
  [0x18d80, 0x18df2],
  [0x1ccfa, 0x1ccfc],
  [0x1ceba, 0x1ced0],
  [0x1cee0, 0x1cef0],
  [0x1e6c0, 0x1e6de],
  [0x1e6e0, 0x1e6f5],
  [0x1e6fe, 0x1e6ff],
  [0x1f6d8, 0x1f6d8],
  [0x1f777, 0x1f77a],
  [0x1f8d0, 0x1f8d8],
  [0x1fa54, 0x1fa57],
  [0x1fa8a, 0x1fa8a],
  [0x1fa8e, 0x1fa8e],
  [0x1fac8, 0x1fac8],
  [0x1facd, 0x1facd],
  [0x1faea, 0x1faea],
  [0x1faef, 0x1faef],
  [0x1fbfa, 0x1fbfa],
  [0x2b73a, 0x2b73f],
  [0x2cea2, 0x2cead],
  [0x323b0, 0x33479],
]
const isNew = (codePoint: number) =>
  NEW_CHARACTERS.some(([first, last]) => first <= codePoint && codePoint <= last)
const withoutNew = (text: string) => [...text].filter((letter) => !isNew(letter.codePointAt(0) ?? 0)).join('')

/** Texts with many kinds of characters, including those that affect words and merges. */
const texts = (markers: readonly string[]) =>
  fc
    .array(
      fc.oneof(
        { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
        { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
        fc.constantFrom(
          "'s",
          "'S",
          "'ſ",
          "I'll we'VE ",
          '  ',
          '\n\n ',
          '\r\n',
          '\u0085',
          '\ufeff',
          '1234567',
          '٣٤٥',
          'é',
          'a'.repeat(130),
          '漢字かな',
          '😀',
        ),
        fc.constantFrom(' ', ...markers),
      ),
      { maxLength: 10 },
    )
    .map((parts) => withoutNew(parts.join('')))

const families: readonly (readonly [string, string | null])[] = [
  ['the sample', SAMPLE],
  ...['gpt2', 'qwen3', 'deepseek_v3'].map((family) => {
    const folder = tokenizerPart(family)
    return [family, folder === null ? null : `${folder}/tokenizer.json`] as const
  }),
]

describe.each(families)('%s', (_name, file) => {
  let own: ReadBpe
  let native: InstanceType<typeof Tokenizer>
  beforeAll(() => {
    if (file === null) return
    const opened = openFile(file)
    if (opened === null) throw new Error('it is not known')
    own = opened
    native = Tokenizer.fromFile(file)
  }, 120_000)

  test.skipIf(file === null)(
    'any text has the ids of the native library',
    async () => {
      const { added_tokens: added } = JSON.parse(readFileSync(file ?? '', 'utf8'))
      const markers = (added as { content: string }[]).slice(0, 20).map(({ content }) => content)
      await fc.assert(
        fc.asyncProperty(texts(markers), fc.boolean(), async (text, addSpecialTokens) => {
          const encoding = await native.encode(text.toWellFormed(), null, { addSpecialTokens })
          expect([...own.opened.encode(text, addSpecialTokens)], JSON.stringify(text)).toEqual(
            encoding.getIds(),
          )
        }),
        { numRuns: runs(300) },
      )
    },
    120_000,
  )

  test.skipIf(file === null)('token ids and vocabulary size are those of the library', () => {
    expect(own.vocabSize).toBe(native.getVocabSize(true))
    for (let id = 0; id < own.vocabSize; id += 97) {
      const piece = native.idToToken(id)
      if (piece !== null) expect(own.opened.tokenToId(piece)).toBe(id)
    }
    expect(own.opened.tokenToId('no such token, certainly')).toBeNull()
  })
})

test('an endless word is merged in near linear time, with the ids of the library', async () => {
  const own = openFile(SAMPLE)
  const native = Tokenizer.fromFile(SAMPLE)
  for (const word of ['a'.repeat(3_000), 'thequickbrownfox'.repeat(200), 'ab'.repeat(1_500)]) {
    const encoding = await native.encode(word, null, { addSpecialTokens: false })
    expect([...(own?.opened.encode(word, false) ?? [])]).toEqual(encoding.getIds())
  }
  const time = (length: number) => {
    const { user } = process.cpuUsage()
    own?.opened.encode('thequickbrownfox'.repeat(length / 16), false)
    return process.cpuUsage().user - user
  }
  time(160_000)
  const short = Math.max(5_000, ...[1, 2, 3].map(() => time(160_000)))
  const long = Math.min(...[1, 2, 3].map(() => time(1_600_000)))
  expect(long).toBeLessThan(40 * short)
}, 180_000)

describe('word patterns', () => {
  test.each([
    ["(?i:'s|'t)", "(?:'[sSſ]|'[tT])"],
    ['[^\\r\\n\\p{L}]?\\s+(?!\\S)', '[^\\r\\n\\p{L}]?\\p{White_Space}+(?!\\P{White_Space})'],
    ['[!"\\-\\"\\]]{1,3}', '[!"\\-"\\]]{1,3}'],
  ])('%s', (pattern, expected) => {
    expect(toWordPattern(pattern)?.source).toBe(new RegExp(expected, 'gu').source)
  })

  test.each([
    'a++',
    'a*?',
    '(?<=a)b',
    '[a&&b]',
    '[a[b]]',
    '\\bword',
    'a.b',
    '^a',
    '(?i:[a])',
    '\\p{Han}',
    '(a',
  ])('%s is left to the library', (pattern) => expect(toWordPattern(pattern)).toBeNull())
})

test.each([
  ['an unknown normalizer', { normalizer: { type: 'Lowercase' } }],
  ['another kind of decoder', { decoder: { type: 'Metaspace' } }],
  ['a space before the text', { pre_tokenizer: { type: 'ByteLevel', add_prefix_space: true } }],
  ['another kind of model', { model: { type: 'WordPiece', vocab: { a: 0 }, merges: [] } }],
  ['merges of unknown pieces', { model: { type: 'BPE', vocab: { a: 0 }, merges: ['a b'] } }],
])('%s is left to the library', (_name, change) => {
  const bytes = Buffer.from(JSON.stringify({ ...JSON.parse(readFileSync(SAMPLE, 'utf8')), ...change }))
  expect(readBpe(bytes, jsonMembers(bytes), [])).toBeNull()
})

test('texts are normalized by the Unicode version of the library', () => {
  // U+07FD became a combining mark in Unicode 11, which the accent may cross.
  expect(['e\u0301', 'e\u07fd\u0301', 'e\u07fde\u0301', 'plain'].map(toNfc)).toEqual([
    'é',
    'e\u07fd\u0301',
    'e\u07fdé',
    'plain',
  ])
})

test.each([true, false])(
  'added tokens decode as in the library, where it is in use or not (lstrip: %s)',
  async (lstrip) => {
    const file = JSON.parse(readFileSync(SAMPLE, 'utf8')) as {
      added_tokens: MarkerToken[]
      normalizer: unknown
    }
    const first = Math.max(...file.added_tokens.map(({ id }) => id)) + 1
    file.normalizer = { type: 'NFC' }
    const contents = ['é|', 'e\u0301!|', 'Ġx|', '<｜u｜>', 'a b']
    for (const [at, content] of contents.entries())
      file.added_tokens.push({
        id: first + at,
        content,
        special: false,
        normalized: at < 2,
        lstrip,
      })
    for (const token of file.added_tokens) Object.assign(token, { single_word: false, rstrip: false, lstrip })
    const folder = mkdtempSync(join(tmpdir(), 'weir-added-'))
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(file))
    const { facts } = await openFrom(folder)
    rmSync(folder, { recursive: true })
    const library = Tokenizer.fromString(JSON.stringify(file))
    for (const { id } of file.added_tokens) {
      const decoder = new IdDecoder(new TokenTable(facts.table), facts.rules ?? PLAIN_RULES, {
        skipSpecialTokens: false,
      })
      expect(decoder.push(id) + decoder.end()).toBe(await library.decode([id], false))
    }
  },
)
