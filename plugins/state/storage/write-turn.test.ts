import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TURN_CELLS, WriteTurn } from './write-turn.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
})

const makeTurns = (count: number) => {
  const cells = new Int32Array(new SharedArrayBuffer(TURN_CELLS * 4))
  return Array.from({ length: count }, () => new WriteTurn(cells))
}

test('turns go round in the order of asking', async () => {
  const turns = makeTurns(3)
  const order: number[] = []
  await turns[0].take()
  const others = [2, 1].map(async (index) => {
    await turns[index].take()
    order.push(index)
    turns[index].give()
  })
  expect(order).toEqual([])
  turns[0].give()
  await vi.advanceTimersByTimeAsync(500)
  await Promise.all(others)
  expect(order).toEqual([2, 1])
})

test('a turn is kept for as long as it is renewed', async () => {
  const [holder, waiting] = makeTurns(2)
  await holder.take()
  let isTaken = false
  const taken = waiting.take().then(() => {
    isTaken = true
  })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(isTaken).toBe(false)
  expect(holder.isMine).toBe(true)
  holder.give()
  await vi.advanceTimersByTimeAsync(200)
  await taken
})

test('a holder that died is passed over, and one that only hung notices', async () => {
  const [dead, waiting] = makeTurns(2)
  await dead.take()
  vi.clearAllTimers()
  const taken = waiting.take()
  await vi.advanceTimersByTimeAsync(3_000)
  await taken
  expect(dead.isMine).toBe(false)
  dead.give()
  expect(waiting.isMine).toBe(true)
  waiting.give()
  await dead.take()
  expect(dead.isMine).toBe(true)
})
