import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LOCK_CELLS, WriteLock } from './write-lock.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
})

const makeLocks = (count: number) => {
  const cells = new Int32Array(new SharedArrayBuffer(LOCK_CELLS * 4))
  return Array.from({ length: count }, () => new WriteLock(cells))
}

test('threads get the lock in order of request', async () => {
  const locks = makeLocks(3)
  const order: number[] = []
  await locks[0].acquire()
  const others = [2, 1].map(async (index) => {
    await locks[index].acquire()
    order.push(index)
    locks[index].release()
  })
  expect(order).toEqual([])
  locks[0].release()
  await vi.advanceTimersByTimeAsync(500)
  await Promise.all(others)
  expect(order).toEqual([2, 1])
})

test('a lock is held while it is renewed', async () => {
  const [holder, waiting] = makeLocks(2)
  await holder.acquire()
  let isTaken = false
  const taken = waiting.acquire().then(() => {
    isTaken = true
  })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(isTaken).toBe(false)
  expect(holder.isHeld).toBe(true)
  holder.release()
  await vi.advanceTimersByTimeAsync(200)
  await taken
})

test('a dead holder is skipped, and a holder that only hung notices', async () => {
  const [dead, waiting] = makeLocks(2)
  await dead.acquire()
  vi.clearAllTimers()
  const taken = waiting.acquire()
  await vi.advanceTimersByTimeAsync(3_000)
  await taken
  expect(dead.isHeld).toBe(false)
  dead.release()
  expect(waiting.isHeld).toBe(true)
  waiting.release()
  await dead.acquire()
  expect(dead.isHeld).toBe(true)
})
