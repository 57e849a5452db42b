import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Publisher } from './publisher.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('changes during a publish share the next one, which contains them all', async () => {
  const gates: PromiseWithResolvers<void>[] = []
  const sent: number[] = []
  let state = 1
  const publisher = new Publisher(() => {
    sent.push(state)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    return gate.promise
  })
  const first = publisher.publish()
  state = 2
  const second = publisher.publish()
  state = 3
  const third = publisher.publish()
  expect(sent).toEqual([1])
  gates[0].resolve()
  await first
  await vi.advanceTimersByTimeAsync(0)
  expect(sent).toEqual([1, 3])
  gates[1].resolve()
  await Promise.all([second, third])
  expect(sent).toEqual([1, 3])
})

test('a slow publish is followed by a pause, and all changes of the pause are published together', async () => {
  const sentAtMs: number[] = []
  const publisher = new Publisher(() => {
    sentAtMs.push(performance.now())
    return new Promise((resolve) => setTimeout(resolve, 10))
  })
  const startedAtMs = performance.now()
  const first = publisher.publish()
  await vi.advanceTimersByTimeAsync(10)
  await first
  const changes = Array.from({ length: 100 }, () => publisher.publish())
  await vi.advanceTimersByTimeAsync(29)
  expect(sentAtMs.length).toBe(1)
  await vi.advanceTimersByTimeAsync(11)
  await Promise.all(changes)
  expect(sentAtMs.map((atMs) => atMs - startedAtMs)).toEqual([0, 40])
  await vi.advanceTimersByTimeAsync(50)
  void publisher.publish()
  expect(sentAtMs.length).toBe(3)
})

test('a failed publish does not block the next', async () => {
  let isBroken = true
  const publisher = new Publisher(async () => {
    if (isBroken) throw new Error('broken')
  })
  const first = publisher.publish()
  const second = publisher.publish()
  await expect(first).rejects.toThrow('broken')
  await expect(second).rejects.toThrow('broken')
  isBroken = false
  await expect(publisher.publish()).resolves.toBeUndefined()
})
