/** Interpretation of the scheduler's settings. */
import { describe, expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { limitsConfig } from '../config.ts'
import { findPriority, MaxClasses, sampleCapacity, schedulerRules } from './scheduler-rules.ts'

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

  test('is the configured one', () => expect(sample(['10'], 7)).toBe(7))
  test("is the sum of the workers' labels", () => expect(sample(['10', '32'])).toBe(42))
  test('counts 64 for a worker without a label beside others', () =>
    expect(sample(['10', undefined, 'x'])).toBe(138))
  test('is the concurrency limit if no worker has a label', () =>
    expect(sample([undefined], null, 5)).toBe(5))
  test('is 1024 without any information', () => expect(sample([])).toBe(1_024))
})

test('the capacity is limited to the counter range', () => {
  expect(schedulerRules(config({}), 1_000_000).capacity).toBe(65_535)
})

test('class names are case-insensitive, unknown ones are undefined', () => {
  expect(['SYSTEM', 'Interactive', 'default', ' bulk '].map(findPriority)).toEqual([0, 1, 2, 3])
  expect(findPriority('urgent')).toBeUndefined()
})

test('without settings the maximum class is default; a listed tenant may exceed it', () => {
  const classes = new MaxClasses(config({ tenants: [{ tenant: 'auth:ops', maxClass: 'system' }] }))
  expect([classes.of('auth:any'), classes.of('auth:ops')]).toEqual([2, 0])
})
