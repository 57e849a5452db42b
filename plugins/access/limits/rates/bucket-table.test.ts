/** Buckets by key in bounded memory. */
import { describe, expect, test } from 'vitest'
import { BucketTable, bucketKey } from './bucket-table.ts'
import { bucketPerMinute, takeTokens } from './token-bucket.ts'

const SECOND = 1_000_000_000n
const SIZE = bucketPerMinute(1)

const open = (rows: number) => new BucketTable(new SharedArrayBuffer(BucketTable.bytes(rows)))

function take(table: BucketTable, name: string, nowNs: bigint): boolean {
  return takeTokens(table.words, table.find(bucketKey(name), nowNs), SIZE, 1, nowNs) === 0n
}

describe('the table of buckets', () => {
  test('gives each key its own bucket, the same for every thread', () => {
    const memory = new SharedArrayBuffer(BucketTable.bytes(64))
    const [a, b] = [new BucketTable(memory), new BucketTable(memory)]
    expect(take(a, 'one', SECOND)).toBe(true)
    expect(take(b, 'one', SECOND)).toBe(false)
    expect(take(b, 'two', SECOND)).toBe(true)
  })

  test('any number of keys is supported: full buckets are reused', () => {
    const table = open(8)
    for (let i = 0; i < 1_000; i++) {
      const nowNs = BigInt(i + 1) * 61n * SECOND
      expect(take(table, `tenant ${i}`, nowNs)).toBe(true)
      expect(take(table, `tenant ${i}`, nowNs)).toBe(false)
    }
  })

  test('if every row is in use, the fullest bucket is replaced', () => {
    const table = open(8)
    for (let i = 0; i < 8; i++) expect(take(table, `tenant ${i}`, BigInt(i + 1) * SECOND)).toBe(true)
    expect(take(table, 'newcomer', 9n * SECOND)).toBe(true)
    expect(take(table, 'tenant 7', 9n * SECOND)).toBe(false)
    expect(take(table, 'newcomer', 9n * SECOND)).toBe(false)
    expect(take(table, 'tenant 0', 9n * SECOND)).toBe(true)
  })

  test('names that are equal when joined have different keys', () => {
    expect(bucketKey('ab', 'c')).not.toBe(bucketKey('a', 'bc'))
  })
})
