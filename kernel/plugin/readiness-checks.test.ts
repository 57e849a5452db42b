import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ReadinessChecks } from './readiness-checks.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => {
  vi.useRealTimers()
})

test('a startup check counts until it has passed once; a permanent one always counts', () => {
  const checks = new ReadinessChecks()
  let [permanent, startup]: (string | null)[] = ['no worker', 'one is missing']
  checks.add(() => startup, true)
  checks.add(() => permanent, false)
  checks.begin(1_000)
  expect(checks.reason()).toBe('no worker')
  permanent = null
  expect(checks.reason()).toBe('one is missing')
  startup = null
  expect([checks.reason(), checks.missing()]).toEqual([null, []])
  startup = 'one was added'
  expect([checks.reason(), checks.missing()]).toEqual([null, ['one was added']])
  permanent = 'no worker'
  expect(checks.reason()).toBe('no worker')
})

test('a startup check that does not pass counts for the configured time, and is reported afterwards', () => {
  const checks = new ReadinessChecks()
  checks.add(() => 'one is missing', true)
  expect(checks.reason()).toBe('one is missing')
  checks.begin(1_000)
  vi.advanceTimersByTime(999)
  expect(checks.reason()).toBe('one is missing')
  vi.advanceTimersByTime(1)
  expect([checks.reason(), checks.missing()]).toEqual([null, ['one is missing']])
})

test('without a wait, startup checks do not count', () => {
  const checks = new ReadinessChecks()
  checks.add(() => 'one is missing', true)
  checks.begin(0)
  expect([checks.reason(), checks.missing()]).toEqual([null, ['one is missing']])
})
