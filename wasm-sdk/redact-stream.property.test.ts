/** However an engine cuts its text, the example that redacts answers gives the same text. */
import fc from 'fast-check'
import { beforeAll, expect, test, vi } from 'vitest'
import { runCase } from '../plugins/wasm/testing/run-cases.ts'
import { BUILD_LIMIT_MS, builtModule } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUILD_LIMIT_MS })

const REPLACEMENT = '[redacted]'

let bytes: Uint8Array
beforeAll(async () => {
  bytes = await builtModule('examples/wasm-redact-stream')
}, BUILD_LIMIT_MS)

/** Few letters, so that secrets and their beginnings are everywhere; one takes two units. */
const letters = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '😀'), minLength, maxLength })
const secrets = fc.uniqueArray(letters(1, 5), { minLength: 1, maxLength: 3 })
const pieces = fc.array(letters(0, 6), { minLength: 1, maxLength: 12 })
const streams = fc.array(pieces, { minLength: 3, maxLength: 5 })

/** From left to right, the longest secret at each place. */
function redacted(text: string, words: readonly string[]): string {
  const longestFirst = words.toSorted((a, b) => b.length - a.length)
  return text.replaceAll(new RegExp(longestFirst.join('|'), 'gu'), REPLACEMENT)
}

test('a text in pieces', async () => {
  await fc.assert(
    fc.asyncProperty(secrets, streams, async (words, all) => {
      const steps = all.map((texts) => ({ on: 'OnText' as const, text: { pieces: texts }, expect: {} }))
      const result = await runCase({ title: 'any', config: { secrets: words.join(',') }, steps }, { bytes })
      for (const [place, { differences, observed }] of result.steps.entries()) {
        expect(differences).toEqual([])
        expect(observed.pieces.join('')).toBe(redacted(all[place].join(''), words))
      }
    }),
    { numRuns: 16 },
  )
})
