import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KvCache } from './kv-cache.ts'

describe('the prefix cache', () => {
  test('what nobody holds is found again until its place is needed', () => {
    const kv = new KvCache(4)
    expect(kv.claim([1, 2], 0, 3)).toBe(true)
    expect([kv.publish(1), kv.publish(2)]).toEqual([true, true])
    kv.release([1, 2], 1)
    expect([kv.used, kv.idle]).toEqual([0, 2])
    expect(kv.match([1, 2, 3], 3)).toBe(2)

    expect(kv.claim([7], 0, 3)).toBe(true)
    expect([kv.used, kv.idle, kv.evictions]).toEqual([3, 1, 1])
    expect(kv.match([1, 2], 2)).toBe(1)
  })

  test('the least recently used prefix goes first, its end before its beginning', () => {
    const kv = new KvCache(4)
    for (const names of [
      [1, 2],
      [11, 12],
    ]) {
      kv.claim(names, 0, 2)
      for (const name of names) kv.publish(name)
      kv.release(names, 0)
    }
    kv.claim([1, 2], kv.match([1, 2], 2), 0)
    kv.release([1, 2], 0)
    kv.claim([], 0, 1)
    expect([kv.match([1, 2], 2), kv.match([11, 12], 2)]).toEqual([2, 1])
  })

  test('a sequence that does not fit changes nothing', () => {
    const kv = new KvCache(3)
    kv.claim([1], 0, 2)
    kv.publish(1)
    expect(kv.claim([1, 5], 1, 2)).toBe(false)
    expect([kv.used, kv.idle]).toEqual([2, 0])
    expect(kv.claim([1, 5], 1, 1)).toBe(true)
    expect(kv.used).toBe(3)
  })

  test('a name that exists is not published twice', () => {
    const kv = new KvCache(4)
    kv.claim([1], 0, 1)
    kv.claim([1], 0, 1)
    expect([kv.publish(1), kv.publish(1)]).toEqual([true, false])
    kv.release([1], 0)
    kv.release([], 1)
    expect([kv.used, kv.idle]).toEqual([0, 1])
  })

  test('blocks in use and blocks kept never exceed the capacity, and all come back', () => {
    const prefix = fc.integer({ min: 0, max: 3 })
    const length = fc.integer({ min: 1, max: 6 })
    const action = fc.record({ prefix, length, extra: fc.integer({ min: 0, max: 3 }), ends: fc.boolean() })
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const kv = new KvCache(10)
        const open: { shared: number[]; privateBlocks: number }[] = []
        for (const { prefix, length, extra, ends } of actions) {
          const names = Array.from({ length }, (_, index) => prefix * 100 + index)
          const hits = kv.match(names, length)
          if (kv.claim(names, hits, length - hits + extra)) {
            const own = names.slice(hits).filter((name) => kv.publish(name))
            const shared = [...names.slice(0, hits), ...own]
            open.push({ shared, privateBlocks: length + extra - shared.length })
          }
          expect(kv.used + kv.idle).toBeLessThanOrEqual(kv.capacity)
          if (ends)
            for (const { shared, privateBlocks } of open.splice(0, 1)) kv.release(shared, privateBlocks)
        }
        for (const { shared, privateBlocks } of open) kv.release(shared, privateBlocks)
        expect(kv.used).toBe(0)
      }),
    )
  })
})
