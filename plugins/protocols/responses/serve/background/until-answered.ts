/** A store that is away for a while is asked again: what was begun must come to its end. */
import { setTimeout as pause } from 'node:timers/promises'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/**
 * Tries, with growing pauses, until it works or the gateway ends.
 * @param ask may be called again after it has failed, whatever it had done by then
 * @throws what it failed with last, once the gateway ends
 */
export async function untilAnswered<R>(ask: () => Promise<R>, gatewayEnds: AbortSignal): Promise<R> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await ask()
    } catch (error) {
      if (gatewayEnds.aborted) throw error
      await pause(pauseMs, undefined, { signal: gatewayEnds }).catch(() => undefined)
    }
  }
}
