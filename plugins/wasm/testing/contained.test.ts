/** Hostile modules in the author's test runner: the check ends with a finding, and memory stays limited. */
import { expect, test } from 'vitest'
import { ATTACKS, FLOOD, LIST_FUEL, LONG_LISTS, module } from '../../../test/fixtures/wasm/attacks.ts'
import { toInput } from './case-input.ts'
import { checkModule } from './conformance.ts'
import { runCase } from './run-cases.ts'
import { ModuleRunner } from './runner.ts'

const LIMIT_MS = 300_000
/** For a long output, on a loaded machine. */
const LIST_DEADLINE_MS = 60_000
/** Memory of a module, its exchange memory, and a margin. */
const MOST_MIB = 64 + 80 + 50

test('for every attack the check reports a failed call, and memory stays within the limit', {
  timeout: LIMIT_MS,
}, async () => {
  const before = process.memoryUsage().rss
  for (const [name, bytes] of Object.entries(ATTACKS)) {
    const { findings } = await checkModule(bytes)
    expect(findings.map(({ code }) => code).at(-1), name).toMatch(/^(call_failed|too_slow|bad_output)$/)
    expect((process.memoryUsage().rss - before) / 2 ** 20, name).toBeLessThan(MOST_MIB)
  }
})

test.each(Object.entries(LONG_LISTS))('%s in an output fail the call', async (_, bytes) => {
  const before = process.memoryUsage().rss
  const runner = await ModuleRunner.open({ bytes, limits: { fuel: LIST_FUEL, timeoutMs: LIST_DEADLINE_MS } })
  try {
    const { outcome, problem } = await runner.call(
      'OnRequest',
      toInput({ on: 'OnRequest', expect: {} }, {}, 0).head,
    )
    expect([outcome, problem]).toEqual([
      'failed',
      expect.stringMatching(/head of the output has \d{8} bytes/),
    ])
    expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(MOST_MIB)
  } finally {
    await runner.close()
  }
})

test('a stream that grows to 40 MB over many calls is played, and memory stays within the limit', {
  timeout: LIMIT_MS,
}, async () => {
  const before = process.memoryUsage().rss
  const events = Array.from({ length: 40 }, (_, index) => ({ data: String(index) }))
  const step = { on: 'OnStreamEvent' as const, events, expect: {} }
  const { steps } = await runCase(
    { title: 'flood', steps: [step] },
    { bytes: FLOOD, limits: { timeoutMs: LIST_DEADLINE_MS } },
  )
  const written = steps[0].observed.events.reduce((sum, { data }) => sum + data.length, 0)
  expect(written).toBeGreaterThan(40_000_000)
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(MOST_MIB)
})

test.each([
  ['functions', '(table 9000000 funcref)'],
  ['references', '(table 9000000 externref)'],
  ['memories', '(memory 600) (memory 600)'],
])('%s beyond the limit are a problem before they are allocated', async (_, declarations) => {
  const before = process.memoryUsage().rss
  const { isOk, findings } = await checkModule(module(declarations, ''))
  expect([isOk, findings.at(-1)?.level]).toEqual([false, 'problem'])
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(50)
})
