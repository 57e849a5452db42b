/** Mutated modules are refused in words, fail by themselves, or run within their fuel: the thread goes on. */
import { expect, test } from 'vitest'
import { guestBytes } from '../../../test/fixtures/wasm/guest-build.ts'
import { MUTABLE } from '../../../test/fixtures/wasm/mutable-module.ts'
import { callMutants } from '../../../test/fixtures/wasm/mutated-modules.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'

/** Some more on a machine that has the time: `WEIR_MUTANTS=100000`. */
const COUNT = Number(process.env.WEIR_MUTANTS ?? 3_000)

test('3,000 mutated modules, taken in and called', { timeout: 100_000 + COUNT * 50 }, async () => {
  // The small one more often: what a byte changes shows sooner there.
  const originals = [
    ...Array.from({ length: 9 }, () => assemble(MUTABLE)),
    Uint8Array.from(await guestBytes()),
  ]
  const counts = await callMutants(originals, COUNT, 7)
  expect(counts.mutants).toBe(COUNT)
  expect(counts.called).toBeGreaterThan(100)
  expect(counts.refused).toBeGreaterThan(100)
})
