import { expect, test } from 'vitest'
import { checkCollectionName, checkKeyPart, toRecordJson } from './stored-collection.ts'

test.each(['', 'a b', 'a/b', 'ä', 'a\u0000', 'a'.repeat(65)])('%j is an invalid collection name', (name) => {
  expect(() => checkCollectionName(name)).toThrow(/letters, digits and hyphens/)
})

test.each(['a\u0000b', '\ud800', 'a'.repeat(1_025), 'ä'.repeat(513)])('%j is an invalid key part', (text) => {
  expect(() => checkKeyPart('tenant', text)).toThrow(/tenant/)
  expect(() => checkKeyPart('id', text)).toThrow(/id/)
})

test.each(['', 'a', 'a'.repeat(1_024), 'ä'.repeat(512), '🌍'.repeat(256)])(
  '%j is a valid key part',
  (text) => {
    expect(checkKeyPart('id', text)).toBe(text)
  },
)

test('a value that is no JSON, or too long, is rejected', () => {
  expect(() => toRecordJson(undefined, 10)).toThrow(TypeError)
  expect(() => toRecordJson('x'.repeat(9), 10)).toThrow(/larger/)
  expect(toRecordJson('x'.repeat(8), 10)).toBe('"xxxxxxxx"')
})
