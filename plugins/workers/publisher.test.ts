import { expect, test } from 'vitest'
import { Publisher } from './publisher.ts'

test('changes during a publish share the one after it, which shows them all', async () => {
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
  await Promise.resolve()
  expect(sent).toEqual([1, 3])
  gates[1].resolve()
  await Promise.all([second, third])
  expect(sent).toEqual([1, 3])
})

test('a publish that fails does not hold up the next', async () => {
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
