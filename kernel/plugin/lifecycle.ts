/** Runs one step of one plugin within its deadline; failures carry plugin and step. */

import { BootError } from '../errors/boot-error.ts'
import { settlesWithin } from '../threads/settles-within.ts'
import { pluginFailure } from './plugin-errors.ts'

/**
 * @param limitMs 0 waits for ever
 * @throws BootError naming plugin and step
 */
export async function runStep(
  plugin: string,
  step: string,
  limitMs: number,
  run: () => unknown,
): Promise<void> {
  try {
    const work = Promise.resolve().then(run)
    if (limitMs === 0) await work
    else if (!(await settlesWithin(work, limitMs))) throw new BootError(`it did not finish within ${limitMs} ms`)
  } catch (cause) {
    throw pluginFailure(plugin, step, cause)
  }
}
