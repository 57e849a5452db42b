import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReceivedError, redact } from './received-error.ts'

test.each([
  ['Incorrect API key provided: sk-proj-abcd****wxyz.', 'sk-proj-abcd****wxyz'],
  ['{"error":"bad","api_key":"mysecretvalue"}', 'mysecretvalue'],
  ['Authorization: Bearer abc.def-ghi', 'abc.def-ghi'],
  ['token=abcd1234efgh', 'abcd1234efgh'],
  ['invalid hf_AbCdEfGhIjKl', 'hf_AbCdEfGhIjKl'],
  ['no user 9f86d081884c7d659a2feaa0c55ad015', '9f86d081884c7d659a2feaa0c55ad015'],
  ['the key plainword was rejected', 'plainword'],
])('%s: the credential is removed', (text, secret) => {
  const safe = redact(text, ['plainword'])
  expect(safe).not.toContain(secret)
  expect(safe).toContain('[redacted]')
})

test('messages of engines stay readable', () => {
  const text = '{"error":{"message":"CUDA out of memory on DeepSeek-R1-Distill-Qwen-32B, max_tokens: 4096"}}'
  expect(redact(text, [])).toBe(text)
})

test('any text becomes one bounded line without control characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (text) => {
      const safe = redact(text, [])
      expect(safe.length).toBeLessThanOrEqual(300)
      expect(safe).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
    }),
  )
})

test('a body is read up to its limit, in any chunks; a word that is cut is dropped', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 20 }), (sizes) => {
      const error = new ReceivedError('http://a', 'status 500', ['secretsecret'])
      for (const size of sizes) error.take(Buffer.from('secretsecret '.repeat(100).slice(0, size)))
      expect(error.text).toMatch(/^status 500/)
      expect(error.text).not.toContain('secretsecret')
    }),
  )
  const cut = new ReceivedError('http://a', 'status 500', ['secretsecret'])
  cut.take(Buffer.from(`${'a '.repeat(509)}secretsecret`))
  expect(cut.text).not.toContain('secret')
})
