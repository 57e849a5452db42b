/** The benchmark command: runs scenarios, prints figures with their targets, and writes them as JSON. */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { COMPARABLE, SCENARIOS } from './scenarios/catalog.ts'
import { chooseScenarios } from './support/choose-scenarios.ts'
import { type Figure, progressOf, type Scenario, verdict } from './support/figure.ts'
import { plotCurves } from './support/plot.ts'
import { renderTable, type ScenarioResult, toJson } from './support/report.ts'

const USAGE = `Usage: npm run bench -- [name …] [--rounds 5] [--seconds 4] [--json out.json]
                        [--policy round_robin …] [--shared 0.7] [--against ../before] [--plots docs/guide/curves]

${SCENARIOS.map(({ name, question }) => `  ${name.padEnd(23)} ${question}`).join('\n')}

A name selects that scenario, or else all scenarios that start with it ("wasm" runs wasm-*); the default is all.
--policy (repeatable) applies to policy-sim and fleet-2000.
--shared (share of prompts with a common system prompt, 0 to 1) applies to policy-sim.
--plots is the folder for an SVG file of each curves-*.
--against is the root of another built checkout: scenarios with such a form compare its gateway with this one, by turns.
Load clients, workers, nginx and gateway run on this machine, so compare only figures of the same run.
The exit code is 1 if a target is missed.`

function numberOf(option: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (Number.isFinite(value) && value >= least && value <= most) return value
  throw new Error(`--${option} must be a number from ${least} to ${most} (got "${text}")`)
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
      policy: { type: 'string', multiple: true, default: [] },
      shared: { type: 'string', default: '0.7' },
      json: { type: 'string' },
      plots: { type: 'string' },
      against: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return console.log(USAGE)
  if (process.platform !== 'linux') throw new Error('benchmarks read /proc and run on Linux only')
  const options = {
    rounds: Math.round(numberOf('rounds', values.rounds, 1, 100)),
    seconds: numberOf('seconds', values.seconds, 1, 3_600),
    policies: values.policy,
    shared: numberOf('shared', values.shared, 0, 1),
  }
  const results: ScenarioResult[] = []
  const report = async ({ name, question, axis }: Scenario, measured: Promise<Figure[]>) => {
    const result = { scenario: name, question, axis, figures: await measured }
    results.push(result)
    if (values.plots !== undefined && axis !== undefined)
      writeFileSync(join(values.plots, `${name}.svg`), plotCurves(question, axis, result.figures))
    console.log(`\n${renderTable(result)}\n`)
  }
  if (values.against === undefined) {
    for (const scenario of chooseScenarios(SCENARIOS, positionals))
      await report(scenario, scenario.run({ ...options, progress: progressOf(scenario) }))
  } else {
    const against = resolve(values.against)
    for (const scenario of chooseScenarios(COMPARABLE, positionals))
      await report(scenario, scenario.compare({ ...options, against, progress: progressOf(scenario) }))
  }
  if (values.json !== undefined) writeFileSync(values.json, toJson(results, options.rounds, options.seconds))
  if (results.some((result) => result.figures.some((figure) => verdict(figure) === 'missed')))
    process.exitCode = 1
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
main().catch((error: Error) => {
  console.error(`bench: ${error.message}`)
  process.exit(1)
})
