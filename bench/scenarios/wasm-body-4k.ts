/** One module that reads a body of 4 KB and replaces it: what do the copies cost? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { commonFigures, measureModules } from '../support/wasm-relay.ts'

async function run(options: RunOptions): Promise<Figure[]> {
  const reuse = [{ guest: 'body', point: 'OnRequest', instance: 'reuse' }] as const
  return commonFigures(await measureModules({ reuse }, 4_096, options), ['reuse'])
}

export const wasmBody4k: Scenario = {
  name: 'wasm-body-4k',
  question: 'what does a module that replaces a 4 KB body cost?',
  run,
}
