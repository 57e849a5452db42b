/** Modules that try to hurt the gateway, at the author's desk: the check ends, says so, and keeps its memory. (W43, W44) */
import { expect, test } from 'vitest'
import { ATTACKS, module } from '../test/fixtures/wasm/attacks.ts'
import { checkModule } from './conformance.ts'

const LIMIT_MS = 300_000
/** Memory of a module, what it exchanges with the host, and what they may take beyond. */
const MOST_MIB = 64 + 80 + 50

test('whatever a module tries, the check says that its call failed, and memory stays within the limit', {
  timeout: LIMIT_MS,
}, async () => {
  const before = process.memoryUsage().rss
  for (const [name, bytes] of Object.entries(ATTACKS)) {
    const { findings } = await checkModule(bytes)
    expect(findings.map(({ code }) => code).at(-1), name).toMatch(/^(call_failed|too_slow)$/)
    expect((process.memoryUsage().rss - before) / 2 ** 20, name).toBeLessThan(MOST_MIB)
  }
})

test.each([
  ['functions', '(table 9000000 funcref)'],
  ['references', '(table 9000000 externref)'],
  ['memories', '(memory 600) (memory 600)'],
])('%s beyond the limit are a problem before anything is made of them', async (_, declarations) => {
  const before = process.memoryUsage().rss
  const { isOk, findings } = await checkModule(module(declarations, ''))
  expect([isOk, findings.at(-1)?.level]).toEqual([false, 'problem'])
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(50)
})
