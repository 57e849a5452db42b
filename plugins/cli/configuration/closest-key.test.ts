import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { closestKey, editDistance } from './closest-key.ts'

describe('editDistance', () => {
  test('is zero only between equal words', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(editDistance(a, b) === 0).toBe(a === b)
      }),
    )
  })

  test('is symmetric and never longer than the longer word', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        const distance = editDistance(a, b)
        expect(distance).toBe(editDistance(b, a))
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length))
      }),
    )
  })

  test('counts one for an additional letter and one for two swapped letters', () => {
    expect(editDistance('port', 'ports')).toBe(1)
    expect(editDistance('prot', 'port')).toBe(1)
  })
})

describe('closestKey', () => {
  test('finds each known name for itself, in any case and with hyphens', () => {
    const names = ['host', 'port', 'graceMs', 'maxBodyBytes']
    for (const name of names) expect(closestKey(name, names)).toBe(name)
    expect(closestKey('grace-ms', names)).toBe('graceMs')
    expect(closestKey('MAX_BODY_BYTES', names)).toBe('maxBodyBytes')
  })

  test('prefers the nearest of several', () => {
    expect(closestKey('prot', ['proto', 'port', 'host'])).toBe('proto')
    expect(closestKey('hots', ['port', 'host'])).toBe('host')
  })

  test('matches suffixes in both directions', () => {
    const health = ['timeout_secs', 'check_interval_secs', 'disable_health_check']
    expect(closestKey('intervalSecs', health)).toBe('check_interval_secs')
    expect(closestKey('check_interval_secs', ['timeoutSecs', 'intervalSecs'])).toBe('intervalSecs')
    expect(closestKey('interval', ['first_interval', 'second_interval'])).toBeNull()
    expect(closestKey('wholly_secs', ['secs', 'other'])).toBeNull()
  })

  test('matches prefixes in both directions', () => {
    expect(closestKey('healthCheck', ['health', 'urls', 'workers'])).toBe('health')
    expect(closestKey('timeout', ['timeout_secs', 'endpoint'])).toBe('timeout_secs')
    expect(closestKey('startup', ['startupDelaySecs', 'startupTimeoutSecs'])).toBeNull()
    expect(closestKey('log', ['logarithm'])).toBeNull()
  })

  test('returns nothing if no name is similar', () => {
    expect(closestKey('colour', ['host', 'port'])).toBeNull()
    expect(closestKey('x', [])).toBeNull()
  })
})
