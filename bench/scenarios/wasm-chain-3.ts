/** Three modules one after the other: do they cost three times one? In the pool, and on the serving thread. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { commonFigures, measureModules } from '../support/wasm-relay.ts'

async function run(options: RunOptions): Promise<Figure[]> {
  const module = { guest: 'header', point: 'OnRequest', instance: 'reuse' } as const
  const measured = await measureModules({ one: [module], three: [module, module, module] }, 250, options)
  const ratio = (three: readonly number[], one: readonly number[]) =>
    three.map((value, round) => value / one[round])
  return [
    ...commonFigures(measured, ['one', 'three']),
    {
      name: 'added CPU, three / one',
      unit: '×',
      values: ratio(measured.addedCpu('three'), measured.addedCpu('one')),
      target: 1.5,
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
