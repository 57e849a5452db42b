/** The vocabulary of Harmony models for tests, made from a package of `test/parts`. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partFolder } from './tokenizer-parts.ts'

const DIGEST = '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d'

/** Writes a new file, which the caller removes with its folder; null if the package is not installed. */
export function harmonyVocabulary(): string | null {
  const part = partFolder('tiktoken')
  if (part === null) return null
  const { bpe_ranks: packed } = JSON.parse(readFileSync(join(part, 'encoders/o200k_base.json'), 'utf8'))
  const lines: string[] = []
  for (const row of String(packed).split('\n')) {
    const [, first, ...pieces] = row.split(' ')
    for (const [place, piece] of pieces.entries()) lines.push(`${piece} ${Number(first) + place}\n`)
  }
  const text = lines.join('')
  if (createHash('sha256').update(text).digest('hex') !== DIGEST)
    throw new Error('the package holds another vocabulary')
  const file = join(mkdtempSync(join(tmpdir(), 'weir-harmony-')), 'o200k_harmony.tiktoken')
  writeFileSync(file, text)
  return file
}
