import { expect, test } from 'vitest'
import { toTime } from './keys.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')

test.each([
  ['90d', '2026-04-01T00:00:00.000Z'],
  ['12h', '2026-01-01T12:00:00.000Z'],
  ['30m', '2026-01-01T00:30:00.000Z'],
  ['2027-01-31', '2027-01-31'],
])('the expiry %s is sent as %s', (when, sent) => {
  expect(toTime(when, NOW)).toBe(sent)
})

test.each(['90 days', '1x', ''])('the expiry %j is rejected by the name of its option', (when) => {
  expect(() => toTime(when, NOW)).toThrow('--expires must be a duration')
})
