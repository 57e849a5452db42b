import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RequestLog } from './request-log.ts'
import type { RequestView } from './wire.ts'

const view = (request_id: string, bytes_out = 0) => ({ request_id, bytes_out }) as RequestView

test('the last requests are kept, the oldest is removed first', () => {
  const log = new RequestLog(3, 1_000, () => 0)
  log.add(['a', 'b', 'c', 'd'].map((id) => view(id)))
  expect(log.find('a')).toEqual([])
  expect(log.find('d')).toEqual([view('d')])
  expect(log.size).toBe(3)
})

test('expired requests are removed', () => {
  let nowMs = 0
  const log = new RequestLog(10, 1_000, () => nowMs)
  log.add([view('a')])
  nowMs = 1_000
  expect(log.find('a')).toHaveLength(1)
  nowMs = 1_001
  expect(log.find('a')).toEqual([])
  expect(log.size).toBe(0)
})

test('requests with one id are returned latest first', () => {
  const log = new RequestLog(10, 1_000, () => 0)
  log.add([view('a', 1), view('b'), view('a', 2)])
  expect(log.find('a').map(({ bytes_out }) => bytes_out)).toEqual([2, 1])
})

test('for any sequence, exactly the last requests are found', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(8), { maxLength: 200 }), fc.integer({ min: 1, max: 9 }), (ids, keep) => {
      const log = new RequestLog(keep, 1_000, () => 0)
      for (const [index, id] of ids.entries()) log.add([view(String(id), index)])
      const kept = ids.map((id, index) => ({ id, index })).slice(-keep)
      for (let id = 0; id <= 8; id++) {
        const expected = kept.filter((one) => one.id === id).map(({ index }) => index)
        expect(log.find(String(id)).map(({ bytes_out }) => bytes_out)).toEqual(expected.reverse())
      }
      expect(log.size).toBe(kept.length)
    }),
  )
})

test('pages follow each other although records are added and removed meanwhile', () => {
  const log = new RequestLog(4, 1_000, () => 0)
  const any = { tenant: null, model: null, worker: null, status: null, limit: 2 }
  const ids = (after: number | null) =>
    log.page({ ...any, after }).requests.map(({ request_id }) => request_id)
  log.add(['a', 'b', 'c', 'd'].map((id) => view(id)))
  const first = log.page({ ...any, after: null })
  expect(first.requests.map(({ request_id }) => request_id)).toEqual(['d', 'c'])
  log.add([view('e')])
  expect(ids(first.last)).toEqual(['b'])
  expect(ids(0)).toEqual([])
  expect(ids(1_000)).toEqual(['e', 'd'])
})
