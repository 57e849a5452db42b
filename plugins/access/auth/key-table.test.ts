import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyTable, keyDigest } from './key-table.ts'

const grant = (tenant: string) => ({ identity: { tenant, role: null }, expiresAtMs: 0 })
const entry = (key: string, serving: string | null, admin: string | null = null) => ({
  digest: keyDigest(key),
  serving: serving === null ? null : grant(serving),
  admin: admin === null ? null : grant(admin),
})

test('a key is found only in full, for any length and characters', () => {
  const key = fc.oneof(fc.string({ minLength: 1 }), fc.string({ unit: 'grapheme', minLength: 1 }))
  const length = fc.constantFrom(1, 40, 1_365, 1_366, 5_000)
  fc.assert(
    fc.property(key, key, length, (start, end, times) => {
      const whole = start.repeat(times) + end
      const table = new KeyTable([entry(whole, 'a')])
      expect(table.find(whole)?.serving?.identity.tenant).toBe('a')
      expect(table.find(`${whole}x`)).toBeUndefined()
      expect(table.find(whole.slice(0, -1))).toBeUndefined()
      expect(table.find('')).toBeUndefined()
      // The digest is stored and must not open anything.
      expect(table.find(keyDigest(whole))).toBeUndefined()
    }),
  )
})

test('the first owner of a repeated key keeps it on each plane, across groups', () => {
  const table = new KeyTable([entry('k', 'one')], [entry('k', 'two', 'ops'), entry('k', null, 'late')])
  const found = table.find('k')
  expect([found?.serving?.identity.tenant, found?.admin?.identity.tenant]).toEqual(['one', 'ops'])
  expect(table.size).toBe(1)
})

test('the digest is what sha256sum prints', () => {
  expect(keyDigest('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
