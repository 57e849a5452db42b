/** Validation of the output of `describe`. */
import { expect, test } from 'vitest'
import { ABI_VERSION } from '../../../wasm-sdk/abi.ts'
import { readDescription, unknownMember } from './description.ts'

test('a valid description is returned unchanged', () => {
  const value = {
    abi: 1,
    needs: { headers: ['a'], response_body: true },
    instance: 'reuse',
    on_failure: 'closed',
    settings: { limit: { type: 'integer', minimum: 1 } },
  }
  expect(readDescription(JSON.stringify(value))).toEqual(value)
  expect(readDescription('{"abi":1}')).toEqual({ abi: 1 })
})

test.each([
  ['', 'the output of describe is not valid JSON'],
  ['[]', 'must be an object'],
  ['{}', 'abi is required'],
  ['{"abi":0}', 'abi must be >= 1'],
  [`{"abi":${ABI_VERSION + 1}}`, `requires interface version ${ABI_VERSION + 1}`],
  ['{"abi":1,"needs":{"body":true}}', 'needs.body is not known'],
  ['{"abi":1,"needs":{"request_body":"yes"}}', 'needs.request_body must be a boolean'],
  ['{"abi":1,"needs":{"headers":[1]}}', 'needs.headers.0 must be a string'],
  ['{"abi":1,"instance":"warm"}', 'instance must be one of "fresh", "reuse", "shared"'],
  ['{"abi":1,"on_failure":"shut"}', 'on_failure must be one of "open", "closed"'],
  ['{"abi":1,"settings":{"limit":{"type":"date"}}}', 'settings.limit.type must be one of'],
])('%s is rejected: %s', (json, message) => {
  expect(() => readDescription(json)).toThrow(message)
})

test('an unknown member is reported by name', () => {
  expect(unknownMember({ abi: 1, need: {} })).toBe('need')
  expect(unknownMember({ abi: 1, needs: {}, settings: {} })).toBeUndefined()
})
