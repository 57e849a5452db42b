/**
 * `node test/fuzz/run.ts bodies|answers|modules --count 1000000 --seed 1`: prints how each ended, a line for each slice, each in a
 * gateway of its own. Needs the built gateway. Exit code 1 when one ended badly.
 */
import { parseArgs } from 'node:util'
import { fuzzAnswers, fuzzBodies, isGood as isGoodReport } from './fuzz.ts'
import { fuzzModules, isGoodWithModules } from './modules.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '10000' },
    slice: { type: 'string', default: '50000' },
    seed: { type: 'string', default: '1' },
  },
})
const [what] = positionals
async function run(count: number, seed: number): Promise<{ isGood: boolean; report: object }> {
  if (what === 'modules') {
    const report = await fuzzModules(count, seed)
    return { isGood: isGoodWithModules(report), report }
  }
  const report = await (what === 'answers' ? fuzzAnswers : fuzzBodies)(count, seed)
  return { isGood: isGoodReport(report), report }
}

let seed = Number(values.seed)
let isAllGood = true
for (let left = Number(values.count); left > 0; left -= Number(values.slice)) {
  const { isGood, report } = await run(Math.min(left, Number(values.slice)), seed)
  isAllGood &&= isGood
  console.log(JSON.stringify({ seed, ...report }))
  seed++
}
process.exit(isAllGood ? 0 : 1)
