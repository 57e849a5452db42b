/** Whatever a prompt holds, the example that redacts requests changes its text and nothing else. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { toInput } from '../plugins/wasm/testing/case-input.ts'
import { checkOutput } from '../plugins/wasm/testing/checked-output.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtModule } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

let runner: ModuleRunner
beforeAll(async () => {
  runner = await ModuleRunner.open({ bytes: await builtModule('examples/wasm-redact-request') })
}, BUILD_LIMIT_MS)
afterAll(() => runner.close())

/** The body that goes on. */
async function redacted(body: string): Promise<string> {
  const { head } = toInput({ on: 'OnRequest', expect: {} }, {}, 0)
  const { output, problem } = await runner.call('OnRequest', head, new TextEncoder().encode(body))
  expect(problem).toBeNull()
  return checkOutput(output, 'OnRequest').body?.toString('utf8') ?? body
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
const other = fc.jsonValue({ stringUnit: 'grapheme' })
const part = fc.record(
  { type: fc.constant('text'), text, cache_control: other },
  { requiredKeys: ['type', 'text'] },
)
const message = fc.record({
  role: fc.constantFrom('user', 'tool'),
  content: fc.oneof(text, fc.array(part)),
  name: text,
  tool_calls: other,
})
const body = fc.record({
  model: text,
  messages: fc.array(message, { maxLength: 5 }),
  metadata: other,
  seed: fc.double({ noNaN: true, noDefaultInfinity: true }),
})

/** The document with each text of a message replaced by one and the same word. */
function withoutTexts(json: string): unknown {
  const parsed = JSON.parse(json)
  for (const one of parsed.messages) {
    if (typeof one.content === 'string') one.content = 'text'
    else for (const inner of one.content) inner.text = 'text'
  }
  return parsed
}

test('everything but the texts of messages stays', async () => {
  await fc.assert(
    fc.asyncProperty(body, fc.nat(2), async (value, indent) => {
      const json = JSON.stringify(value, null, indent)
      expect(withoutTexts(await redacted(json))).toEqual(withoutTexts(json))
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
      const [{ content: result }] = JSON.parse(
        await redacted(JSON.stringify({ messages: [{ content }] })),
      ).messages
      expect(result).not.toMatch(/\d{3}|@/)
    }),
    { numRuns: 100 },
  )
})

test('a million digits take no more time than any other text of that length', async () => {
  const json = JSON.stringify({ messages: [{ content: '1'.repeat(1_000_000) }] })
  expect((await redacted(json)) === json).toBe(true)
})
