import { expect, test } from 'vitest'
import { ReadinessChecks } from './readiness-checks.ts'

test('a startup check counts until it has passed once; a permanent one always counts', () => {
  const checks = new ReadinessChecks(() => false)
  let [permanent, startup]: (string | null)[] = ['no worker', 'one is missing']
  checks.add(() => startup, true)
  checks.add(() => permanent, false)
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

test('a startup check that does not pass counts until the wait is over, and is reported afterwards', () => {
  let isOver = false
  const checks = new ReadinessChecks(() => isOver)
  checks.add(() => 'one is missing', true)
  expect(checks.reason()).toBe('one is missing')
  isOver = true
  expect([checks.reason(), checks.missing()]).toEqual([null, ['one is missing']])
})
