/**
 * Requests to shut the gateway down: by a signal, a plugin, or an uncaught error on the control thread, whose state is unknown
 * from then on.
 */
import type { Logger } from './contracts/log.ts'

/** State of a shutdown request, by a signal or by a plugin. */
export class ShutdownRequest {
  readonly #requested = Promise.withResolvers<number>()
  readonly #hurried = Promise.withResolvers<void>()
  /** Resolves with the settle time in milliseconds. */
  readonly requested = this.#requested.promise
  /** Resolves when a second signal ends the drain. */
  readonly hurried = this.#hurried.promise
  #isRequested = false

  /** The first call requests the shutdown, the second ends the drain. */
  demand(settleMs: number): void {
    if (this.#isRequested) this.#hurried.resolve()
    this.request(settleMs)
  }

  /** Later calls have no effect. @returns true for the first call */
  request(settleMs: number): boolean {
    const isFirst = !this.#isRequested
    this.#isRequested = true
    this.#requested.resolve(settleMs)
    return isFirst
  }
}

/** An uncaught error on the control thread has shut the gateway down; its cause is that error, which was logged. */
export class ControlError extends Error {
  constructor(cause: unknown) {
    super('the gateway was shut down after an uncaught error on the control thread; see the log', { cause })
    this.name = 'ControlError'
  }
}

/**
 * Further errors while the gateway drains are only logged.
 *
 * @param onFirst starts the shutdown
 * @returns removes the guard
 */
export function guardControl(log: Logger, onFirst: (error: ControlError) => void): () => void {
  let hasFailed = false
  const note = (kind: 'exception' | 'rejection') => (err: unknown) => {
    const isFirst = !hasFailed
    hasFailed = true
    try {
      log.error({ err, kind }, 'uncaught error on the control thread')
    } catch {
      // A failing log output must not call the guard again.
    }
    if (isFirst) onFirst(new ControlError(err))
  }
  const onException = note('exception')
  const onRejection = note('rejection')
  process.on('uncaughtException', onException)
  process.on('unhandledRejection', onRejection)
  return () => {
    process.off('uncaughtException', onException)
    process.off('unhandledRejection', onRejection)
  }
}
