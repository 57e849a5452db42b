/** The example that redacts prompts finds personal data in any text, and changes nothing else. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { promptEntries, toInput } from '../plugins/wasm/testing/case-input.ts'
import { checkOutput } from '../plugins/wasm/testing/checked-output.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtModule } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

let runner: ModuleRunner
beforeAll(async () => {
  runner = await ModuleRunner.open({ bytes: await builtModule('examples/wasm-redact-request') })
}, BUILD_LIMIT_MS)
afterAll(() => runner.close())

/** The texts that the model gets. */
async function redacted(texts: readonly string[]): Promise<readonly string[]> {
  const prompt = texts.map((text) => ({ text }))
  const { head, body } = toInput({ on: 'OnPromptText', prompt, expect: {} }, {}, 0)
  const { output, problem } = await runner.call('OnPromptText', head, body)
  expect(problem).toBeNull()
  return checkOutput(output, 'OnPromptText', { prompt: promptEntries(prompt) }).prompt
}

/** Pieces of which personal data is made, and of which it is not. */
const piece = fc.constantFrom(
  'a@b.example',
  '@',
  '.',
  '+49 30 901820',
  '4111 1111 1111 1111',
  '555-123-4567',
  '12',
  ' ',
  '-',
  'ü',
  '😀',
  '"',
  '\\',
  '\n',
  'x',
  '(',
  '1',
)
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))

test('what is not found stays, in every text', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 6 }), async (texts) => {
      const found = /\[(?:email|card|phone)\]/
      for (const [index, after] of (await redacted(texts)).entries())
        if (!found.test(after)) expect(after).toBe(texts[index])
    }),
    { numRuns: 150 },
  )
})

test('an address, a card and a telephone number between words are always found', async () => {
  const word = fc.constantFrom('and', 'Grüße', '😀', 'x,', '(see')
  const secret = fc.constantFrom(
    'a.b+c@mail.example.org',
    '4111-1111-1111-1111',
    '+1 (555) 123-4567',
    '0555 123 4567',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(word, secret), { minLength: 1, maxLength: 5 }), async (pairs) => {
      const content = pairs.map((pair) => pair.join(' ')).join(' ')
      const [result] = await redacted([content])
      expect(result).not.toMatch(/\d{3}|@/)
    }),
    { numRuns: 100 },
  )
})

test('a million digits take no more time than any other text of that length', async () => {
  const digits = '1'.repeat(1_000_000)
  expect((await redacted([digits]))[0] === digits).toBe(true)
})
