/**
 * `node test/fuzz/run.ts [suite …] [--count N] [--seed S] [--seconds T] [--only INDEX]`: runs the suites, all by default, and
 * prints a report of each. Needs the built gateway. Exit code 1 if something failed; --only repeats one case of a seed.
 */
import { parseArgs } from 'node:util'
import { stopCommands } from '../support/built-command.ts'
import { bodies } from './bodies.ts'
import { framing } from './framing.ts'
import { grpc } from './grpc.ts'
import { runSuite, type Suite } from './harness.ts'
import { modules } from './modules.ts'
import { sockets } from './sockets.ts'
import { templates } from './templates.ts'
import { workers } from './workers.ts'

const SUITES: Readonly<Record<string, Suite>> = {
  bodies,
  workers,
  sockets,
  framing,
  grpc,
  templates,
  modules,
}

// As in the container image: otherwise the C library keeps what a burst needed, and growth would not be attributable.
process.env.MALLOC_MMAP_THRESHOLD_ ??= '1048576'
process.env.MALLOC_TRIM_THRESHOLD_ ??= '1048576'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '3600' },
    only: { type: 'string' },
  },
})
const unknown = positionals.find((name) => SUITES[name] === undefined)
if (unknown !== undefined)
  throw new Error(`unknown suite ${unknown}; suites: ${Object.keys(SUITES).join(', ')}`)

let isGood = true
for (const name of positionals.length > 0 ? positionals : Object.keys(SUITES)) {
  console.log(`${name}: seed ${values.seed}`)
  const report = await runSuite(SUITES[name], {
    count: Number(values.count ?? SUITES[name].count),
    seconds: Number(values.seconds),
    seed: Number(values.seed),
    only: values.only === undefined ? undefined : Number(values.only),
    print: (line) => console.log(`${name}: ${line}`),
  })
  isGood &&= report.findings.length === 0 && report.problems.length === 0
  console.log(JSON.stringify({ suite: name, seed: Number(values.seed), ...report }, null, 1))
}
await stopCommands()
process.exit(isGood ? 0 : 1)
