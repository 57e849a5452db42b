/** Prompts of pieces have the ids of Harmony's public library, and no control tokens from a text. */
import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { harmonyVocabulary } from '../../../test/support/harmony-vocabulary.ts'
import { openFrom } from '../../../test/support/loaded-tokenizer.ts'
import { tokenizerPart } from '../../../test/support/tokenizer-parts.ts'
import type { OpenTokenizer } from './open-tokenizer.ts'
import { withoutMarkers } from './segments.ts'

interface Row {
  readonly name: string
  readonly pieces: readonly (string | readonly [string])[]
  readonly count: number
  readonly ids: string
}

const chats = new URL('../../../test/fixtures/harmony/chats.json', import.meta.url)
const rows = JSON.parse(readFileSync(chats, 'utf8')) as readonly Row[]
const vocabulary = harmonyVocabulary()
const text = (content: string) => ({ isToken: false, text: content })

afterAll(() => {
  if (vocabulary !== null) rmSync(dirname(vocabulary), { recursive: true })
})

describe.skipIf(vocabulary === null)('the Harmony vocabulary', () => {
  let tokenizer: OpenTokenizer
  beforeAll(async () => {
    tokenizer = await openFrom(vocabulary ?? '')
  }, 180_000)

  test.each(rows.map((row) => [row.name, row] as const))('ids of %s', async (_name, row) => {
    const pieces = row.pieces.map((piece) =>
      typeof piece === 'string' ? text(piece) : { isToken: true, text: piece[0] },
    )
    const ids = await tokenizer.encodePieces(pieces)
    const digest = createHash('sha256').update(ids.join(',')).digest('hex').slice(0, 16)
    expect([ids.length, digest]).toEqual([row.count, row.ids])
  })

  test('no text becomes a control token', async () => {
    const shards = ['<|end|>', '<|start|>', '<|call|>', '<|', '|>', 'end', '<', 'é', '😀', '\ud83d']
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...shards), { maxLength: 12 }), async (parts) => {
        const ids = await tokenizer.encodePieces([text(parts.join(''))])
        expect(Math.max(0, ...ids)).toBeLessThan(199_998)
      }),
    )
    expect([...(await tokenizer.encoder.encode('<|end|>'))]).toEqual([200_007])
  })

  test('the error names a token that the vocabulary lacks', async () => {
    const pieces = [{ isToken: true, text: '<|im_start|>' }]
    await expect(tokenizer.encodePieces(pieces)).rejects.toThrowError(/no token <\|im_start\|>/)
  })
})

const llama2 = tokenizerPart('llama2')

test.skipIf(llama2 === null)(
  'vocabularies of the library: a text that contains token strings gives no such tokens',
  async () => {
    const tokenizer = await openFrom(llama2 ?? '')
    const special = [...(await tokenizer.encoder.encode('</s>'))]
    const ids = await tokenizer.encodePieces([text('a</s>b<s>'), { isToken: true, text: '</s>' }])
    expect(special).toContain(2)
    expect([...ids].filter((id) => id === 2 || id === 1)).toEqual([2])
    expect(ids.at(-1)).toBe(2)
  },
  180_000,
)

test('texts are split so that no part contains a token string', () => {
  const contents = ['<s>', 's><', '😀x']
  const added = contents.map((content, id) => ({ id, content, special: true }))
  const shards = ['<', 's', '>', '<s>', '😀', 'x', 'a']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...shards), { maxLength: 30 }), (given) => {
      const parts = withoutMarkers(given.join(''), added)
      expect(parts.join('')).toBe(given.join(''))
      for (const part of parts) for (const content of contents) expect(part).not.toContain(content)
    }),
  )
})

test('the sample finds its tokens by name, too', async () => {
  const folder = fileURLToPath(new URL('./sample', import.meta.url))
  const tokenizer = await openFrom(folder)
  const [name] = tokenizer.facts.special.all
  const [id] = await tokenizer.encoder.encode(name)
  expect([...(await tokenizer.encodePieces([{ isToken: true, text: name }]))]).toEqual([id])
  expect([...(await tokenizer.encodePieces([text(name)]))]).not.toContain(id)
})
