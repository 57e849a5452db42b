/** Optimistic concurrency: repeats a read-modify-write until its conditional write succeeds. */
import { historyErrors } from './errors.ts'

const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20

/**
 * @param attempt returns CONFLICT if a condition of its write failed
 * @throws history_contended after too many conflicts
 */
export async function retryOnConflict<R>(attempt: () => Promise<R | typeof CONFLICT>): Promise<R> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const result = await attempt()
    if (result !== CONFLICT) return result
    // Random, so that two writers do not conflict again.
    const pauseMs = Math.random() * Math.min(MAX_PAUSE_MS, tries)
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  throw historyErrors.history_contended()
}

export const CONFLICT = Symbol('conflict')
