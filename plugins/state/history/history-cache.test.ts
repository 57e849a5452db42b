import { memoryUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { HistoryItem } from '#kernel'
import { HistoryCache } from './history-cache.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const LIMIT = 8 * 2 ** 20

/** A turn of two items as a request brings them. */
function turn(index: number, text: string, items: number): HistoryItem[] {
  const json = Array.from({ length: items }, (_, at) => ({
    id: `msg_${index}_${at}_0123456789abcdef01234567`,
    type: 'message',
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'input_text', text: `${text} ${index}` }],
  }))
  return JSON.parse(JSON.stringify(json))
}

test.each([
  ['short turns', 20_000, 2, 'a short turn of forty characters or so'],
  ['long chains', 2_000, 40, 'a short turn of forty characters or so'],
  ['long texts', 4_000, 2, 'x'.repeat(4_000)],
])('it takes no more memory than its limit: %s', (_, count, itemCount, text) => {
  const cache = new HistoryCache(LIMIT)
  collect()
  const before = memoryUsage().heapUsed
  for (let index = 0; index < count; index++) {
    const items = turn(index, text, itemCount)
    const place = { chain: `resp_${index}`, turn: 0, depth: 1, bytes: 0, isBased: false }
    const bytes = JSON.stringify(items).length
    const segments = [{ chain: place.chain, to: 0 }]
    cache.set('tenant', place.chain, { items, bytes, segments, marks: [undefined], place, readAtMs: 0 })
  }
  collect()
  const held = memoryUsage().heapUsed - before
  expect(held).toBeLessThan(LIMIT * 1.1)
  // It is used, too.
  expect(held).toBeGreaterThan(LIMIT * 0.5)
  expect(cache.chain('tenant', `resp_${count - 1}`)?.items).toHaveLength(itemCount)
})
