/** A wait that can be given up. */

/** Longest delay that timers take, milliseconds; a longer one would fire at once. */
export const MAX_DELAY_MS = 2 ** 31 - 1

/** Resolves after `waitMs` milliseconds; rejects with the signal's reason as soon as it aborts. */
export function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      },
      Math.min(waitMs, MAX_DELAY_MS),
    )
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
