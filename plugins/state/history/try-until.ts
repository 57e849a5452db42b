/** Read, decide, write under a condition, and once more when somebody else was quicker. */
import { historyErrors } from './errors.ts'

const TRIES = 200
const LONGEST_PAUSE_MS = 20

/**
 * @param attempt gives `again` when its write found something changed
 * @throws history_contended when everybody else is quicker for too long
 */
export async function tryUntil<R>(attempt: () => Promise<R | typeof again>): Promise<R> {
  for (let tries = 0; tries < TRIES; tries++) {
    const result = await attempt()
    if (result !== again) return result
    // By chance, so that those who met once do not meet again.
    const pauseMs = Math.random() * Math.min(LONGEST_PAUSE_MS, tries)
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  throw historyErrors.history_contended()
}

export const again = Symbol('again')
