/** The benchmark command: runs scenarios, prints their figures beside their targets, and writes them as JSON. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { boot } from './scenarios/boot.ts'
import { idleStreams } from './scenarios/idle-streams.ts'
import { relayJson } from './scenarios/relay-json.ts'
import { relayJson100k } from './scenarios/relay-json-100k.ts'
import { relaySse } from './scenarios/relay-sse.ts'
import { slowReader } from './scenarios/slow-reader.ts'
import { type Scenario, verdict } from './support/figure.ts'
import { renderTable, type ScenarioResult, toJson } from './support/report.ts'

const SCENARIOS: readonly Scenario[] = [boot, relayJson, relayJson100k, relaySse, idleStreams, slowReader]

const USAGE = `Usage: npm run bench -- [scenario …] [--rounds 5] [--seconds 4] [--json out.json]

${SCENARIOS.map(({ name, question }) => `  ${name.padEnd(16)} ${question}`).join('\n')}

Without a scenario, all run. Load clients, worker, nginx and gateway are processes of their own on this machine:
compare figures of one run only. The exit code is 1 when a target is missed.`

function chosen(names: readonly string[]): Scenario[] {
  const unknown = names.find((name) => SCENARIOS.every((scenario) => scenario.name !== name))
  if (unknown !== undefined) throw new Error(`no scenario is called ${unknown}\n\n${USAGE}`)
  return SCENARIOS.filter((scenario) => names.length === 0 || names.includes(scenario.name))
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return console.log(USAGE)
  if (process.platform !== 'linux') throw new Error('benchmarks read /proc and run on Linux only')
  const rounds = Number(values.rounds)
  const seconds = Number(values.seconds)
  const results: ScenarioResult[] = []
  for (const scenario of chosen(positionals)) {
    const progress = (text: string) => process.stderr.write(`${scenario.name}: ${text}\n`)
    const figures = await scenario.run({ rounds, seconds, progress })
    const result = { scenario: scenario.name, question: scenario.question, figures }
    results.push(result)
    console.log(`\n${renderTable(result)}\n`)
  }
  if (values.json !== undefined) writeFileSync(values.json, toJson(results, rounds, seconds))
  if (results.some((result) => result.figures.some((figure) => verdict(figure) === 'missed')))
    process.exitCode = 1
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
main().catch((error: Error) => {
  console.error(`bench: ${error.message}`)
  process.exit(1)
})
