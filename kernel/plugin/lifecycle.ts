/** Runs one step of one plugin within its deadline; failures carry plugin and step. */
import { BootError, pluginFailure } from './plugin-errors.ts'

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
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    if (limitMs === 0) return
    timer = setTimeout(() => {
      reject(new BootError(`it did not finish within ${limitMs} ms`))
    }, limitMs)
  })
  try {
    await Promise.race([Promise.resolve().then(run), deadline])
  } catch (cause) {
    throw pluginFailure(plugin, step, cause)
  } finally {
    clearTimeout(timer)
  }
}
