/** A short run of `test/fuzz/run.ts`: no untrusted input may harm the gateway. */
import { afterEach, expect, test } from 'vitest'
import { fuzzAnswers, fuzzBodies, isGood } from '../fuzz/fuzz.ts'
import { fuzzModules, isGoodWithModules } from '../fuzz/modules.ts'
import { stopCommands } from '../support/built-command.ts'

/** The same each time: what others find is looked for by `test/fuzz/run.ts`. */
const SEED = 20_261_123

afterEach(() => stopCommands())

test.each([
  ['request bodies', fuzzBodies, 3_000],
  ['answers and reports of a worker', fuzzAnswers, 1_000],
] as const)('mutated %s', async (_what, fuzz, count) => {
  const report = await fuzz(count, SEED)
  expect({ ...report, isGood: isGood(report) }).toMatchObject({ isGood: true, isWell: true, errors: [] })
  expect(Object.values(report.endings).reduce((sum, times) => sum + times, 0)).toBe(count)
})

test('mutated modules, registered, called and removed', async () => {
  const report = await fuzzModules(300, SEED)
  expect({ ...report, isGood: isGoodWithModules(report) }).toMatchObject({
    isGood: true,
    isWell: true,
    errors: [],
    unexpected: [],
  })
  expect(report.refused + report.called).toBe(300)
  expect(report.goodCalls).toBeGreaterThan(0)
})
