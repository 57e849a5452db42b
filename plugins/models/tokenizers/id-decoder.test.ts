/** Incremental decoding gives the same text as decoding at once, without partial characters. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toByteLetters } from './byte-letters.ts'
import { type DecoderRules, toDecoderRules } from './decoder-rules.ts'
import { IdDecoder, StoppingDecoder } from './id-decoder.ts'
import type { TokenTable } from './token-table.ts'
import { buildTokenTable } from './token-table.ts'

const OPEN = { skipSpecialTokens: false, spacesBetweenSpecialTokens: false, isContinuation: false }
const SPECIAL = { id: 300, content: '<|end|>', special: true }
const MARKER = { id: 301, content: '<tool>', special: false }

function rulesOf(decoder: object): DecoderRules {
  const rules = toDecoderRules(decoder)
  if (rules === null) throw new Error('no rules')
  return rules
}

/** Every byte, some longer pieces that start or end inside characters, and added tokens. */
const BYTE_RULES = rulesOf({ type: 'ByteLevel' })
const larger = ['hello', ' w', 'é', '漢字', '😀'].map((text) => Buffer.from(text))
const cut = [
  Buffer.from('😀').subarray(0, 2),
  Buffer.from('a漢').subarray(0, 3),
  Buffer.from('é!').subarray(1),
]
const bytePieces = [...Array.from({ length: 256 }, (_, byte) => Buffer.of(byte)), ...larger, ...cut]
const addedPiece = (id: number) => [SPECIAL, MARKER].find((token) => token.id === id)?.content ?? null
const byteTable = buildTokenTable({
  size: 302,
  piece: (id) => (id < bytePieces.length ? toByteLetters(bytePieces[id]) : addedPiece(id)),
  added: [SPECIAL, MARKER],
  rules: BYTE_RULES,
})

const LLAMA_RULES = rulesOf({
  type: 'Sequence',
  decoders: [
    { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    { type: 'Strip', content: ' ', start: 1, stop: 0 },
  ],
})
const textPieces = ['▁Hello', '▁', '▁▁', 'lo', 'é', '漢', '�']
const textTable = buildTokenTable({
  size: 302,
  piece: (id) =>
    id < 256
      ? `<0x${id.toString(16).toUpperCase().padStart(2, '0')}>`
      : (textPieces[id - 256] ?? addedPiece(id)),
  added: [SPECIAL, MARKER],
  rules: LLAMA_RULES,
})

function decodeAll(table: TokenTable, rules: DecoderRules, ids: readonly number[], options = {}): string[] {
  const decoder = new IdDecoder(table, rules, { ...OPEN, ...options })
  return [...ids.map((id) => decoder.push(id)), decoder.end()]
}

/** Ids that spell a text byte by byte. */
const textIds = fc.string({ unit: 'binary' }).map((text) => [...Buffer.from(text.toWellFormed())])

describe('byte-level vocabularies', () => {
  const ids = fc.array(fc.integer({ min: 0, max: 310 }), { maxLength: 60 })

  test('any sequence gives the text of all its bytes', () => {
    fc.assert(
      fc.property(ids, (sequence) => {
        const known = sequence.filter((id) => byteTable.has(id))
        const whole = Buffer.concat(known.map((id) => byteTable.bytes(id)))
        expect(decodeAll(byteTable, BYTE_RULES, sequence).join('')).toBe(
          new TextDecoder('utf-8', { ignoreBOM: true }).decode(whole),
        )
      }),
      { numRuns: 2_000 },
    )
  })

  test('no piece of a complete text has a replacement character or half a surrogate pair', () => {
    fc.assert(
      fc.property(textIds, (sequence) => {
        const pieces = decodeAll(byteTable, BYTE_RULES, sequence)
        const whole = Buffer.from(sequence).toString('utf8')
        expect(pieces.join('')).toBe(whole)
        expect(pieces.every((piece) => piece.isWellFormed())).toBe(true)
        if (!whole.includes('�')) expect(pieces.some((piece) => piece.includes('�'))).toBe(false)
      }),
    )
  })

  test('an incomplete character at the end is one replacement character', () => {
    expect(decodeAll(byteTable, BYTE_RULES, [0x61, 0xf0, 0x9f, 0x98])).toEqual(['a', '', '', '', '�'])
  })

  test('a skipped special token does not split a character', () => {
    const sequence = [0xc3, SPECIAL.id, 0xa9, MARKER.id]
    expect(decodeAll(byteTable, BYTE_RULES, sequence, { skipSpecialTokens: true }).join('')).toBe('é<tool>')
    expect(decodeAll(byteTable, BYTE_RULES, sequence).join('')).toBe('�<|end|>�<tool>')
  })

  test('ids beyond the vocabulary are ignored', () => {
    expect(decodeAll(byteTable, BYTE_RULES, [0x61, 4_000_000_000, -1, 1.5, 299, 0x62]).join('')).toBe('ab')
  })

  test('spaces between added tokens', () => {
    const sequence = [0x61, 0x62, MARKER.id, SPECIAL.id, 0x63]
    expect(decodeAll(byteTable, BYTE_RULES, sequence, { spacesBetweenSpecialTokens: true }).join('')).toBe(
      'ab <tool> <|end|> c',
    )
    const skipping = { spacesBetweenSpecialTokens: true, skipSpecialTokens: true }
    expect(decodeAll(byteTable, BYTE_RULES, sequence, skipping).join('')).toBe('ab <tool> c')
  })
})

describe('vocabularies with byte pieces', () => {
  test('any sequence gives the same text as its bytes one by one', () => {
    const ids = fc.array(fc.integer({ min: 0, max: 263 }), { maxLength: 40 })
    fc.assert(
      fc.property(ids, (sequence) => {
        expect(decodeAll(textTable, LLAMA_RULES, sequence).join('')).toBe(fallbackText(sequence))
      }),
      { numRuns: 2_000 },
    )
  })

  test('no piece of a complete text has a replacement character', () => {
    fc.assert(
      fc.property(textIds, (sequence) => {
        const pieces = decodeAll(textTable, LLAMA_RULES, sequence, { isContinuation: true })
        expect(pieces.join('')).toBe(Buffer.from(sequence).toString('utf8'))
      }),
    )
  })

  test('one space at the start is dropped, unless the text continues a prompt', () => {
    expect(decodeAll(textTable, LLAMA_RULES, [257, 256, 256])).toEqual(['', ' Hello', ' Hello', ''])
    expect(decodeAll(textTable, LLAMA_RULES, [258, 256]).join('')).toBe('  Hello')
    expect(decodeAll(textTable, LLAMA_RULES, [256], { isContinuation: true }).join('')).toBe(' Hello')
  })
})

/** The same rules, applied to complete runs of bytes. */
function fallbackText(sequence: readonly number[]): string {
  let text = ''
  let bytes: number[] = []
  const flush = () => {
    for (let at = 0; at < bytes.length; ) {
      const size = [4, 3, 2, 1].find((length) => isOneCharacter(bytes.slice(at, at + length), length)) ?? 0
      text += size === 0 ? '�' : Buffer.from(bytes.slice(at, at + size)).toString('utf8')
      at += size || 1
    }
    bytes = []
  }
  for (const id of sequence) {
    if (id < 256) {
      bytes.push(id)
      continue
    }
    flush()
    text += (textPieces[id - 256] ?? '').replaceAll('▁', ' ')
  }
  flush()
  return text.startsWith(' ') ? text.slice(1) : text
}

function isOneCharacter(bytes: number[], length: number): boolean {
  if (bytes.length !== length) return false
  const text = Buffer.from(bytes).toString('utf8')
  return [...text].length === 1 && Buffer.from(text).equals(Buffer.from(bytes))
}

test('a vocabulary without a decoder joins words with spaces', () => {
  const rules = rulesOf(null as never)
  const table = buildTokenTable({ size: 2, piece: (id) => ['one', 'two'][id], added: [], rules })
  expect(decodeAll(table, rules, [0, 1, 0]).join('')).toBe('one two one')
})

test.each([
  [true, "isn't it, 1.5 'x?"],
  [false, "is n't it , 1 . 5 ' x ?"],
])(
  'WordPiece joins parts of words, and cleans up spaces only if it is configured (%s)',
  (cleanup, expected) => {
    const rules = rulesOf({ type: 'WordPiece', prefix: '##', cleanup })
    const pieces = ['i', '##s', "n't", 'it', ',', '1', '.', '##5', "'", '##x', '?', '5', 'x', '##', ' ']
    const table = buildTokenTable({ size: pieces.length, piece: (id) => pieces[id], added: [], rules })
    const ids = cleanup ? [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [0, 1, 2, 3, 4, 5, 6, 11, 8, 12, 10]
    expect(decodeAll(table, rules, ids).join('')).toBe(expected)
    // The first piece is kept as it is.
    expect(decodeAll(table, rules, [7, 7]).join('')).toBe('##55')
  },
)

test('an unknown decoder is reported as null', () => {
  expect(toDecoderRules({ type: 'CTC' })).toBeNull()
  expect(toDecoderRules({ type: 'Sequence', decoders: [{ type: 'Strip', start: 0, stop: 2 }] })).toBeNull()
})

describe('stops', () => {
  const spell = (text: string) => [...Buffer.from(text)]

  test('a hidden stop id ends the text and releases the held-back text', () => {
    const decoder = new StoppingDecoder(byteTable, BYTE_RULES, { stopIds: [SPECIAL.id], stops: ['abc'] })
    expect([...spell('xab'), SPECIAL.id, ...spell('c')].map((id) => decoder.push(id))).toEqual([
      'x',
      '',
      '',
      'ab',
      '',
    ])
    expect(decoder.matchedStop).toBe(SPECIAL.id)
    expect(decoder.end()).toBe('')
  })

  test('a visible stop id is decoded, and gives no text if special tokens are skipped', () => {
    const texts = [true, false].map((skipSpecialTokens) => {
      const options = { stopIds: [SPECIAL.id], includeStop: true, skipSpecialTokens }
      const decoder = new StoppingDecoder(byteTable, BYTE_RULES, options)
      return [0x61, SPECIAL.id, 0x62].map((id) => decoder.push(id)).join('')
    })
    expect(texts).toEqual(['a', 'a<|end|>'])
  })

  test('a stop string may match in the text released at the end', () => {
    const decoder = new StoppingDecoder(byteTable, BYTE_RULES, { stops: ['x�'] })
    expect([0x79, 0x78, 0xf0].map((id) => decoder.push(id))).toEqual(['y', '', ''])
    expect(decoder.end()).toBe('')
    expect(decoder.matchedStop).toBe('x�')
  })
})
