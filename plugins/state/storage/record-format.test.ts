import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordKey, splitKey, tenantRange } from './record-format.ts'

const tenantText = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\u0000'))
const idText = tenantText
const bytes = (text: string) => Buffer.from(text)

test('records share a key only if collection, tenant and id are equal', () => {
  fc.assert(
    fc.property(tenantText, idText, tenantText, idText, (tenantA, idA, tenantB, idB) => {
      const isSame = tenantA === tenantB && idA === idB
      expect(recordKey('c', tenantA, idA) === recordKey('c', tenantB, idB)).toBe(isSame)
    }),
  )
})

test("a tenant's range has all of its records and no others", () => {
  fc.assert(
    fc.property(tenantText, tenantText, idText, (tenant, other, id) => {
      const { from, to } = tenantRange('c', tenant)
      const isInside = (key: string) =>
        bytes(key).compare(bytes(from)) >= 0 && bytes(key).compare(bytes(to)) < 0
      expect(isInside(recordKey('c', tenant, id))).toBe(true)
      expect(isInside(recordKey('c', other, id))).toBe(tenant === other)
      expect(isInside(recordKey('c2', tenant, id))).toBe(false)
    }),
  )
})

test('a key splits into its parts', () => {
  fc.assert(
    fc.property(tenantText, idText, (tenant, id) => {
      expect(splitKey(recordKey('c', tenant, id))).toEqual({ collection: 'c', tenant, id })
    }),
  )
})
