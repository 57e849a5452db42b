import { expect, test } from 'vitest'
import { isUuid, uuidV7, uuidV7Hex } from './ids.ts'

test('ids are version 7 UUIDs whose text order is their creation order', () => {
  const nowMs = Date.now()
  const ids = Array.from({ length: 10_000 }, (_, index) => uuidV7(nowMs - (index % 7)))
  expect(ids.every((id) => isUuid(id) && id[14] === '7' && '89ab'.includes(id[19]))).toBe(true)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('ids without hyphens are the same ids in the same order, with unique tails', () => {
  const ids = Array.from({ length: 10_000 }, (_, index) => (index % 2 === 0 ? uuidV7Hex() : uuidV7()))
  const plain = ids.map((id) => id.replaceAll('-', ''))
  expect(plain.every((id) => /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/.test(id))).toBe(true)
  expect(plain.toSorted()).toEqual(plain)
  expect(new Set(plain.map((id) => id.slice(16))).size).toBe(plain.length)
})

test('anything that is not a UUID is rejected', () => {
  expect(isUuid('0198F0C2-5A7E-7C31-9B42-0D6F7B1E2A90')).toBe(true)
  for (const text of ['', 'x', '0198f0c2', '0198f0c25a7e7c319b420d6f7b1e2a90x', '../etc'])
    expect(isUuid(text)).toBe(false)
})
