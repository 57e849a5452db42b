/** tiktoken vocabularies give the ids of tiktoken. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openFrom } from '../../../test/support/loaded-tokenizer.ts'
import { isThorough } from '../../../test/support/thorough.ts'
import { partFolder, tokenizerFixture } from '../../../test/support/tokenizer-parts.ts'
import { StoppingDecoder } from './id-decoder.ts'
import { readTiktoken } from './tiktoken-file.ts'
import { TokenTable } from './token-table.ts'

const part = partFolder('tiktoken') ?? ''
const folder = mkdtempSync(join(tmpdir(), 'weir-tiktoken-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const corpus = JSON.parse(readFileSync(tokenizerFixture('corpus.json'), 'utf8')) as string[]

interface Tiktoken {
  encode(text: string, allowed: 'all'): Uint32Array
  free(): void
}

describe.skipIf(part === '')('with tiktoken', () => {
  test.each(isThorough ? ['cl100k_base', 'o200k_base'] : ['cl100k_base'])(
    '%s',
    async (name) => {
      const require = createRequire(import.meta.url)
      const { get_encoding } = require(part) as { get_encoding(name: string): Tiktoken }
      const { bpe_ranks: ranks } = require(`${part}/encoders/${name}.json`) as {
        bpe_ranks: string
      }
      // Line format: a sign, the first rank, and pieces in order.
      const lines = ranks.split('\n').flatMap((line) => {
        const [, first, ...pieces] = line.split(' ')
        return pieces.map((piece, place) => `${piece} ${Number(first) + place}`)
      })
      const file = join(folder, `${name}.tiktoken`)
      writeFileSync(file, lines.join('\n'))
      const { encoder, facts } = await openFrom(file)
      const oracle = get_encoding(name)
      const table = new TokenTable(facts.table)
      for (const text of corpus) {
        const ids = await encoder.encode(text)
        expect([...ids], text).toEqual([...oracle.encode(text.toWellFormed(), 'all')])
        const decoder = new StoppingDecoder(table, facts.rules as NonNullable<typeof facts.rules>, {
          skipSpecialTokens: false,
        })
        expect([...ids].map((id) => decoder.push(id)).join('') + decoder.end()).toBe(text.toWellFormed())
      }
      oracle.free()
    },
    120_000,
  )
})

test.each([
  ['', 'empty'],
  ['YQ== x', 'line 1'],
  ['YQ== 0\nYg==', 'line 2'],
  ['YQ== -1', 'line 1'],
  ['!! 3', 'line 1'],
])('the file content %j is rejected', (text, reason) => {
  expect(() => readTiktoken('x.tiktoken', Buffer.from(text), {})).toThrowError(reason)
})
