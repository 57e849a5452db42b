/** Three modules one after the other: do they cost three times one? In the pool, and on the serving thread. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { commonFigures, measureModules } from '../support/wasm-relay.ts'

async function run(options: RunOptions): Promise<Figure[]> {
  const module = { guest: 'header', point: 'OnRequest', instance: 'reuse' } as const
  const here = { ...module, instance: 'fresh', placement: 'inline' } as const
  const variants = {
    one: [module],
    three: [module, module, module],
    'one inline': [here],
    'three inline': [here, here, here],
  }
  const measured = await measureModules(variants, 250, options)
  const ratio = (three: readonly number[], one: readonly number[]) =>
    three.map((value, round) => value / one[round])
  return [
    ...commonFigures(measured, Object.keys(variants)),
    {
      name: 'added CPU, three / one',
      unit: '×',
      values: ratio(measured.addedCpu('three'), measured.addedCpu('one')),
      target: 1.5,
    },
    {
      name: 'added CPU, three inline / one inline',
      unit: '×',
      values: ratio(measured.addedCpu('three inline'), measured.addedCpu('one inline')),
      target: 2,
    },
    {
      name: 'added p50, three / one',
      unit: '×',
      values: ratio(measured.addedLatency('three', 'p50Micros'), measured.addedLatency('one', 'p50Micros')),
      target: 1.5,
    },
  ]
}

export const wasmChain3: Scenario = {
  name: 'wasm-chain-3',
  question: 'what do three modules cost beside one?',
  run,
}
