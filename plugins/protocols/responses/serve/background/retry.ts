/** Retries of store operations: work that was begun must end even if the store is unavailable for a while. */
import { setTimeout as pause } from 'node:timers/promises'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/**
 * Retries with growing pauses until the operation succeeds or the gateway stops.
 * @param operation must be safe to repeat
 * @throws the last error, once the gateway stops
 */
export async function retryUntilStopped<R>(operation: () => Promise<R>, stopped: AbortSignal): Promise<R> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await operation()
    } catch (error) {
      if (stopped.aborted) throw error
      await pause(pauseMs, undefined, { signal: stopped }).catch(() => undefined)
    }
  }
}
