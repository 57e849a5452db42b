/** One module that adds a header: what does a module cost at least, inline and in the pool, warm and put back? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { ALONE_RATE, commonFigures, measureModules } from '../support/wasm-relay.ts'

async function run(options: RunOptions): Promise<Figure[]> {
  const use = { guest: 'header', point: 'OnRequest' } as const
  const variants = {
    reuse: [{ ...use, instance: 'reuse' }],
    fresh: [{ ...use, instance: 'fresh' }],
    inline: [{ ...use, instance: 'fresh', placement: 'inline' }],
  } as const
  const measured = await measureModules(variants, 250, options)
  const bare = measured.perSecond('bare')
  const reuse = measured.addedCpu('reuse')
  return [
    ...commonFigures(measured, ['reuse', 'fresh', 'inline']),
    ...(['reuse', 'fresh', 'inline'] as const).map((label) => ({
      name: `added p50 at ${ALONE_RATE}/s, ${label}`,
      unit: 'ms',
      values: measured.addedLatencyAlone(label, 'p50Micros'),
      target: label === 'inline' ? 0.02 : 0.12,
      note: 'at the other rates most of it is waiting for a core, which four processes share',
    })),
    {
      name: 'throughput with a module, reuse',
      unit: '1/s',
      values: measured.perSecond('reuse'),
      atLeast: 10_000,
      note: 'for a machine on which the bare gateway does 20,000 or more; the ratio below holds on any',
    },
    {
      name: 'throughput, reuse / bare',
      unit: '×',
      values: measured.perSecond('reuse').map((value, round) => value / bare[round]),
    },
    {
      name: 'added CPU, fresh / reuse',
      unit: '×',
      values: measured.addedCpu('fresh').map((value, round) => value / reuse[round]),
      target: 1.3,
    },
    {
      name: 'added CPU, inline',
      unit: 'µs',
      values: measured.addedCpu('inline'),
      target: 12,
    },
  ]
}

export const wasmHeaders: Scenario = {
  name: 'wasm-headers',
  question: 'what does one module that adds a header cost?',
  run,
}
