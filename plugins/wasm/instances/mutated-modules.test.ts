/** Mutated modules are rejected, fail, or run within their fuel; the thread continues. */
import { expect, test } from 'vitest'
import { guestBytes } from '../../../test/fixtures/wasm/guest-build.ts'
import { MUTABLE } from '../../../test/fixtures/wasm/mutable-module.ts'
import { callMutants } from '../../../test/fixtures/wasm/mutated-modules.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'

/** More for a longer run: `WEIR_MUTANTS=100000`. */
const COUNT = Number(process.env.WEIR_MUTANTS ?? 3_000)

test('3,000 mutated modules are loaded and called', { timeout: 100_000 + COUNT * 50 }, async () => {
  // The small module is used more often: a changed byte has an effect more often there.
  const originals = [
    ...Array.from({ length: 9 }, () => assemble(MUTABLE)),
    Uint8Array.from(await guestBytes()),
  ]
  const counts = await callMutants(originals, COUNT, 7)
  expect(counts.mutants).toBe(COUNT)
  expect(counts.called).toBeGreaterThan(100)
  expect(counts.refused).toBeGreaterThan(100)
})
