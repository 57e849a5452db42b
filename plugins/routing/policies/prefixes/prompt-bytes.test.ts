import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pickRequest } from '../../../../test/support/policy-fleet.ts'
import { MAX_PROMPT_BYTES, promptWords, readPrompt, wholePromptBytes } from './prompt-bytes.ts'

/** The prompt found in a body, as text. */
function promptIn(body: string): string {
  const bytes = readPrompt(pickRequest({ body }))
  return Buffer.from(promptWords.buffer, 0, bytes).toString()
}

test.each([
  [
    '{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}',
    '[{"role":"user","content":"hi"}]',
  ],
  ['{"model":"m","prompt":"once upon"}', '"once upon"'],
  ['{"prompt":["a","b"]}', '["a","b"]'],
  ['{"text":"generate","sampling_params":{"n":1}}', '"generate"'],
  ['{"input_ids":[1,2,3]}', '[1,2,3]'],
  ['{"query":"which","documents":["x","y"]}', '"which"'],
  ['{"input":"embed me","model":"m"}', '"embed me"'],
  // Settings of the same names are not the prompt.
  ['{"text":{"format":{"type":"text"}},"input":"respond"}', '"respond"'],
  ['{"prompt":{"id":"template"},"input":"respond"}', '"respond"'],
  // System text comes first, wherever it is in the body.
  ['{"system":"be kind","messages":[1]}', '"be kind"[1]'],
  ['{"messages":[1],"max_tokens":3,"system":"be kind"}', '"be kind"[1]'],
  ['{"instructions":"be brief","input":"hello"}', '"be brief""hello"'],
  // Names inside strings do not count.
  ['{"metadata":{"messages":[9]},"user":"\\"prompt\\":\\"x\\"","messages":[1]}', '[1]'],
  ['{"stop":["\\"]"],"seed":-1.5e3,"logprobs":null,"messages":[{"a":"]}\\\\"}]}', '[{"a":"]}\\\\"}]'],
  [' {\n "messages" :\t[ 1 ] }', '[ 1 ]'],
  ['{"model":"m"}', ''],
  ['{}', ''],
  ['', ''],
  ['[{"messages":[1]}]', '[1]'],
])('finds the prompt of %s', (body, prompt) => {
  expect(promptIn(body)).toBe(prompt)
})

const member = fc.tuple(
  fc
    .string()
    .filter((key) => !/^(messages|prompt|input|text|input_ids|query|system|instructions)$/.test(key)),
  fc.jsonValue({ maxDepth: 3 }),
)

test('finds the value of messages among any other members', () => {
  fc.assert(
    fc.property(fc.array(member), fc.array(member), fc.array(fc.jsonValue()), (before, after, messages) => {
      const body = JSON.stringify(Object.fromEntries(before))
      const rest = JSON.stringify(Object.fromEntries(after))
      const join = (one: string, other: string) =>
        one === '{}' ? `{${other}` : `${one.slice(0, -1)},${other}`
      const whole = join(
        body,
        `"messages":${JSON.stringify(messages)}${rest === '{}' ? '}' : `,${rest.slice(1)}`}`,
      )
      fc.pre(!whole.includes('"system":') && !whole.includes('"instructions":'))
      expect(promptIn(whole)).toBe(JSON.stringify(messages))
    }),
  )
})

test('never reads outside the body, for any content', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    '"messages"',
    '"system":',
    'a',
    ' ',
    '1',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
      const body = parts.join('')
      expect(readPrompt(pickRequest({ body }))).toBeLessThanOrEqual(2 * body.length)
    }),
    { numRuns: 1_000 },
  )
})

test('inspects the first 64 KiB of a longer prompt and knows its length', () => {
  const content = 'x'.repeat(300_000)
  const body = JSON.stringify({ messages: [{ content }], system: 'lead' })
  expect(readPrompt(pickRequest({ body }))).toBe(MAX_PROMPT_BYTES)
  expect(wholePromptBytes).toBeGreaterThan(300_000)
  expect(Buffer.from(promptWords.buffer, 0, 6).toString()).toBe('"lead"')
})

test('token ids are used unchanged', () => {
  expect(
    readPrompt(pickRequest({ tokenIds: Uint32Array.of(5, 4_294_967_295), body: '{"prompt":"x"}' })),
  ).toBe(8)
  expect([promptWords[0], promptWords[1]]).toEqual([5, -1])
})
