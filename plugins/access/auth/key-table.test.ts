import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyTable } from './key-table.ts'

const user = (tenant: string) => ({ tenant, role: 'user' as const })

test('a key is found only in full, for any length and characters', () => {
  const key = fc.oneof(fc.string({ minLength: 1 }), fc.string({ unit: 'grapheme', minLength: 1 }))
  const length = fc.constantFrom(1, 40, 1_365, 1_366, 5_000)
  fc.assert(
    fc.property(key, key, length, (start, end, times) => {
      const whole = start.repeat(times) + end
      const table = new KeyTable([{ key: whole, identity: user('a') }])
      expect(table.find(whole)?.tenant).toBe('a')
      expect(table.find(`${whole}x`)).toBeUndefined()
      expect(table.find(whole.slice(0, -1))).toBeUndefined()
      // A previous lookup has no effect.
      expect(table.find('')).toBeUndefined()
    }),
  )
})

test('the first owner of a repeated key keeps it, across groups', () => {
  const [one, other] = ['one', 'other'].map((tenant) => ({ key: 'k', identity: user(tenant) }))
  expect(new KeyTable([one], [other]).find('k')?.tenant).toBe('one')
  expect(new KeyTable([one, other]).size).toBe(1)
})
