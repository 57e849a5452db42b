import { expect, test } from 'vitest'
import { isUuid, uuidV7 } from './uuid-v7.ts'

test('ids are UUIDs of version 7, in the order in which they were made, also within a millisecond', () => {
  const ids = Array.from({ length: 1_000 }, () => uuidV7(1_700_000_000_000))
  expect(
    ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)),
  ).toBe(true)
  expect(ids.toSorted()).toEqual(ids)
  expect(ids.every(isUuid)).toBe(true)
})
