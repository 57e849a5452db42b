/**
 * Token ids and incrementally decoded texts of each kind of vocabulary equal those of Python's tokenizers. Skipped where
 * `test/real/templates/setup.sh` has not been run.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { StoppingDecoder } from '../../plugins/models/tokenizers/id-decoder.ts'
import { TokenTable } from '../../plugins/models/tokenizers/token-table.ts'
import { openFrom } from '../support/loaded-tokenizer.ts'
import { tokenizerPart } from '../support/tokenizer-parts.ts'

const HERE = join(import.meta.dirname, 'templates')
const PYTHON = join(HERE, '.templates/python/bin/python')
const isInstalled = existsSync(PYTHON)
if (!isInstalled)
  console.info('tokenizers of Python are missing: test/real/templates/setup.sh has not been run here')

/** With the text, its ids, and both texts of the ids: with special tokens and without. */
type Row = readonly [text: string, ids: readonly number[], kept: string, short: string]

async function unequalRows(source: string, rows: readonly Row[]): Promise<Row[]> {
  const {
    encoder,
    facts: { rules, table: memory },
  } = await openFrom(source, true)
  if (rules === null) throw new Error(`${source} cannot be decoded`)
  const table = new TokenTable(memory)
  const decode = (ids: readonly number[], skipSpecialTokens: boolean) => {
    const decoder = new StoppingDecoder(table, rules, { skipSpecialTokens })
    return ids.map((id) => decoder.push(id)).join('') + decoder.end()
  }
  const unequal: Row[] = []
  for (const [text, ids, kept, short] of rows) {
    const found: Row = [text, [...(await encoder.encode(text))], decode(ids, false), decode(ids, true)]
    if (JSON.stringify(found) !== JSON.stringify([text, ids, kept, short])) unequal.push(found)
  }
  return unequal
}

test.skipIf(!isInstalled)(
  'ids and texts equal those of Python',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-tokens-'))
    const real = ['qwen3', 'llama2', 'gemma3', 'deepseek_v3']
      .map(tokenizerPart)
      .filter((path) => path !== null)
    const files = real.map((path) => join(path, 'tokenizer.json'))
    const { stdout } = await promisify(execFile)(PYTHON, [join(HERE, 'tokens.py'), folder, ...files], {
      maxBuffer: 1 << 28,
    })
    const lines = stdout.trim().split('\n')
    for (const line of lines) {
      const { source, rows } = JSON.parse(line) as { source: string; rows: Row[] }
      expect(await unequalRows(source, rows), source).toEqual([])
    }
    rmSync(folder, { recursive: true })
    expect(lines.length).toBeGreaterThanOrEqual(15)
  },
  600_000,
)
