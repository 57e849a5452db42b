/** Logs why tokens are rejected, at a bounded rate: callers without a key can cause any number of rejections. */
import type { Logger } from '#kernel'

/** Minimum time between two lines with one reason, milliseconds. */
const INTERVAL_MS = 5_000

/** One line per reason and interval, with the number of rejections that had no line. */
export class RefusalLog {
  readonly #log: Pick<Logger, 'info'>
  readonly #reasons = new Map<string, { loggedAtMs: number; suppressed: number }>()

  constructor(log: Pick<Logger, 'info'>) {
    this.#log = log
  }

  /** @param reason one of a fixed set of texts, never text of a token */
  add(reason: string): void {
    const nowMs = performance.now()
    const entry = this.#reasons.get(reason)
    if (entry !== undefined && nowMs - entry.loggedAtMs < INTERVAL_MS) {
      entry.suppressed++
      return
    }
    this.#log.info({ reason, suppressed: entry?.suppressed ?? 0 }, 'token rejected')
    this.#reasons.set(reason, { loggedAtMs: nowMs, suppressed: 0 })
  }
}
