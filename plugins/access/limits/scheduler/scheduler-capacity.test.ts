/** What the scheduler's settings mean. */
import { describe, expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { limitsConfig } from '../config.ts'
import { findPriority, MaxClasses, sampleCapacity, schedulerRules } from './scheduler-capacity.ts'

const config = (scheduler: object) => defineValidator(limitsConfig).parse({ scheduler }).scheduler

describe('the number of slots', () => {
  const sample = (labels: readonly (string | undefined)[], capacity: number | null = null, limit = -1) =>
    sampleCapacity({
      capacity,
      maxConcurrentRequests: limit,
      workers: labels.map((label, slot) =>
        workerEntry({ slot, labels: label === undefined ? {} : { max_running_requests: label } }),
      ),
      status: () => 'ready',
    })

  test('is what the settings say', () => expect(sample(['10'], 7)).toBe(7))
  test('is the sum of what workers say', () => expect(sample(['10', '32'])).toBe(42))
  test('counts 64 for a silent worker beside others', () => expect(sample(['10', undefined, 'x'])).toBe(138))
  test('is the concurrency limit where no worker speaks', () => expect(sample([undefined], null, 5)).toBe(5))
  test('is 1024 where nobody says anything', () => expect(sample([])).toBe(1_024))
})

test('there are never more slots than can be counted', () => {
  expect(schedulerRules(config({}), 1_000_000).capacity).toBe(65_535)
})

test('class names count in any case, unknown ones are none', () => {
  expect(['SYSTEM', 'Interactive', 'default', ' bulk '].map(findPriority)).toEqual([0, 1, 2, 3])
  expect(findPriority('urgent')).toBeUndefined()
})

test('54: without settings nobody exceeds default; a listed tenant may', () => {
  const classes = new MaxClasses(config({ tenants: [{ tenant: 'auth:ops', maxClass: 'system' }] }))
  expect([classes.of('auth:any'), classes.of('auth:ops')]).toEqual([2, 0])
})
