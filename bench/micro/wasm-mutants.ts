/**
 * Takes in and calls mutated modules, 100,000 unless `--count` says otherwise, and says what became of them. Ends with
 * code 1 when one of them does what none may do.
 * Run `node --conditions=weir-source bench/micro/wasm-mutants.ts`.
 */
import { parseArgs } from 'node:util'
import { guestBytes } from '../../test/fixtures/wasm/guest-build.ts'
import { MUTABLE } from '../../test/fixtures/wasm/mutable-module.ts'
import { callMutants } from '../../test/fixtures/wasm/mutated-modules.ts'
import { assemble } from '../../test/fixtures/wasm/wat.ts'

const { values: flags } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
})
const startedAtMs = performance.now()
// The small one more often: what a byte changes shows sooner there.
const originals = [...Array.from({ length: 9 }, () => assemble(MUTABLE)), Uint8Array.from(await guestBytes())]
const counts = await callMutants(originals, Number(flags.count), Number(flags.seed))
const seconds = (performance.now() - startedAtMs) / 1_000
console.log(
  `${JSON.stringify(counts)} in ${seconds.toFixed(0)} s; resident ${Math.round(process.memoryUsage.rss() / 1_048_576)} MiB`,
)
