import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RefusalLog } from './refusal-log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('each reason has one line per interval, with the number of rejections without a line', () => {
  const lines: object[] = []
  const log = new RefusalLog({ info: (fields) => lines.push(fields) })
  for (let count = 0; count < 100; count++) log.add('it has expired')
  log.add('it is malformed')
  vi.advanceTimersByTime(5_000)
  log.add('it has expired')
  vi.advanceTimersByTime(5_000)
  log.add('it has expired')
  expect(lines).toEqual([
    { reason: 'it has expired', suppressed: 0 },
    { reason: 'it is malformed', suppressed: 0 },
    { reason: 'it has expired', suppressed: 99 },
    { reason: 'it has expired', suppressed: 0 },
  ])
})
