import { afterEach, expect, test, vi } from 'vitest'
import { SessionKeeper } from './session-state.ts'

afterEach(() => void vi.useRealTimers())

test('sessions that were signed out are kept until their time', () => {
  vi.useFakeTimers({ now: 0 })
  const keeper = new SessionKeeper()
  keeper.end({ id: 'a', expiresAtMs: 1_000 })
  keeper.end({ id: 'b', expiresAtMs: 2_000 })
  expect([...keeper.state.ended]).toEqual(['a', 'b'])
  vi.setSystemTime(1_000)
  keeper.end({ id: 'c', expiresAtMs: 3_000 })
  expect([...keeper.state.ended]).toEqual(['b', 'c'])
})

test('the list is bounded: beyond it, a new secret ends all sessions', () => {
  const keeper = new SessionKeeper()
  const { secret } = keeper.state
  const expiresAtMs = Date.now() + 60_000
  for (let count = 0; count < 1_000; count++) keeper.end({ id: String(count), expiresAtMs })
  expect([keeper.state.secret, keeper.state.ended.size]).toEqual([secret, 1_000])
  keeper.end({ id: 'last', expiresAtMs })
  expect(keeper.state.secret).not.toEqual(secret)
  expect([...keeper.state.ended]).toEqual(['last'])
})
