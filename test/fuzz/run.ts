/**
 * `node test/fuzz/run.ts bodies|answers --count 1000000 --seed 1`: prints how each ended, a line for each slice, each in a
 * gateway of its own. Needs the built gateway. Exit code 1 when one ended badly.
 */
import { parseArgs } from 'node:util'
import { fuzzAnswers, fuzzBodies, isGood } from './fuzz.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '10000' },
    slice: { type: 'string', default: '50000' },
    seed: { type: 'string', default: '1' },
  },
})
const run = positionals[0] === 'answers' ? fuzzAnswers : fuzzBodies
let seed = Number(values.seed)
let isAllGood = true
for (let left = Number(values.count); left > 0; left -= Number(values.slice)) {
  const report = await run(Math.min(left, Number(values.slice)), seed)
  isAllGood &&= isGood(report)
  console.log(JSON.stringify({ seed, ...report }))
  seed++
}
process.exit(isAllGood ? 0 : 1)
