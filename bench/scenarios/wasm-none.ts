/** The wasm plugin without modules: what does having it cost? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { commonFigures, measureModules } from '../support/wasm-relay.ts'

const LABEL = 'no modules'

async function run(options: RunOptions): Promise<Figure[]> {
  const measured = await measureModules({ [LABEL]: [] }, 250, options)
  const bare = measured.cpu('bare')
  return [
    ...commonFigures(measured, [LABEL]),
    {
      name: `CPU per request, ${LABEL} / bare`,
      unit: '×',
      values: measured.cpu(LABEL).map((value, round) => value / bare[round]),
      target: 1.05,
    },
  ]
}

export const wasmNone: Scenario = {
  name: 'wasm-none',
  question: 'what does the wasm plugin cost when no module is registered?',
  run,
}
