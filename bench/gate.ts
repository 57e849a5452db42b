/** Compares the CPU time of requests with that of the commit which this branch started from, and rejects a regression. */
import { execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { COMPARABLE } from './scenarios/catalog.ts'
import { chooseScenarios } from './support/choose-scenarios.ts'
import { type ComparableScenario, median, progressOf } from './support/figure.ts'
import { temporaryDirectory } from './support/process.ts'

const USAGE = `Usage: npm run bench:gate -- [name …] [--base main] [--rounds 7] [--seconds 2]

Builds the merge base of this branch and --base in a temporary folder (the parent commit if there is no other), measures
both gateways by turns, and prints the median ratio of the CPU time per request. The exit code is 1 if a ratio is above
the limit in two runs.`

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MAX_RATIO = 1.05
const SCENARIOS = [
  'relay-json',
  'relay-json-100k',
  'relay-sse',
  'generate-sse',
  'responses-sse',
  'wasm-headers',
]

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1e9 }).trim()

/** Merge base with that branch; the parent commit on the branch itself. */
function baseCommit(branch: string): string {
  const base = git('merge-base', 'HEAD', branch)
  const isUnchanged = base === git('rev-parse', 'HEAD') && git('status', '--porcelain') === ''
  return isUnchanged ? git('rev-parse', 'HEAD^') : base
}

/** Builds a commit with the packages of this checkout. @returns its root */
function buildCommit(commit: string): string {
  const directory = temporaryDirectory()
  const archive = join(directory, 'source.tar')
  git('archive', '--output', archive, commit)
  execFileSync('tar', ['-xf', archive], { cwd: directory })
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return directory
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      base: { type: 'string', default: 'main' },
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '2' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return console.log(USAGE)
  const commit = baseCommit(values.base)
  const options = {
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    against: buildCommit(commit),
  }
  console.log(
    `CPU per request compared with ${commit.slice(0, 8)}, medians of ${options.rounds} rounds; limit ${MAX_RATIO}`,
  )
  const measure = async (scenario: ComparableScenario): Promise<boolean> => {
    const [before, now, ratios] = await scenario.compare({ ...options, progress: progressOf(scenario) })
    const micros = `${median(before.values).toFixed(0)} → ${median(now.values).toFixed(0)} µs`
    const spread = `${Math.min(...ratios.values).toFixed(2)} … ${Math.max(...ratios.values).toFixed(2)}`
    const ratio = median(ratios.values)
    console.log(`${scenario.name.padEnd(16)} ${ratio.toFixed(3)}  (${spread}; ${micros})`)
    return ratio > MAX_RATIO
  }
  for (const scenario of chooseScenarios(COMPARABLE, positionals.length > 0 ? positionals : SCENARIOS)) {
    if ((await measure(scenario)) && (await measure(scenario))) {
      console.log(`${scenario.name}: above ${MAX_RATIO} in two runs`)
      process.exitCode = 1
    }
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
main().catch((error: Error) => {
  console.error(`bench:gate: ${error.message}`)
  process.exit(1)
})
