import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { blockHashes, KvCache } from './kv-cache.ts'
import { chatPrompt, promptsOf } from './prompt.ts'

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

const words = (count: number, word = 'word') => Array.from({ length: count }, () => word).join(' ')
const ofText = (text: string) => blockHashes(promptsOf(text), 16)

test('only full blocks have names', () => {
  expect(ofText(words(15))).toHaveLength(0)
  expect(ofText(words(16))).toHaveLength(1)
  expect(ofText(words(47))).toHaveLength(2)
})

test('equal beginnings give equal names, and a difference changes every name after it', () => {
  const first = ofText(`${words(32)} one ${words(40)}`)
  const second = ofText(`${words(32)} two ${words(40)}`)
  expect(first.slice(0, 2)).toEqual(second.slice(0, 2))
  for (let index = 2; index < first.length; index += 1) expect(first[index]).not.toBe(second[index])
})

test('blocks of the same text at other places have other names', () => {
  expect(new Set(ofText(words(160))).size).toBe(10)
})

test('who says it counts, and so do token ids', () => {
  const said = (role: string) => blockHashes([chatPrompt([{ role, content: words(16) }])], 16)
  expect(said('user')).not.toEqual(said('system'))
  const ids = Array.from({ length: 33 }, (_, index) => index)
  expect(blockHashes(promptsOf(ids), 16)).toHaveLength(2)
  expect(blockHashes(promptsOf([...ids.slice(0, 16), 99, ...ids.slice(17)]), 16)[0]).toBe(
    blockHashes(promptsOf(ids), 16)[0],
  )
})

test('names are whole numbers that a double holds', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 64, maxLength: 200 }), (text) => {
      for (const name of ofText(text)) expect(Number.isSafeInteger(name)).toBe(true)
    }),
  )
})
