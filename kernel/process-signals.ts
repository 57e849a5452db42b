/** What the signals of the process ask for, and the one place where a shutdown is asked for. */
import type { Logger } from './contracts/log.ts'

/** A shutdown that was asked for: by a signal, by the embedding program, by a plugin. */
export class ShutdownRequest {
  readonly #asked = Promise.withResolvers<number>()
  readonly #hurried = Promise.withResolvers<void>()
  #isAsked = false

  /** Resolves with the settle time in milliseconds. */
  get asked(): Promise<number> {
    return this.#asked.promise
  }

  /** Resolves when somebody does not want to wait. */
  get hurried(): Promise<void> {
    return this.#hurried.promise
  }

  /** The first asks, the second hurries. @source routing facts 3.7 */
  demand(settleMs: number): void {
    if (this.#isAsked) this.#hurried.resolve()
    this.ask(settleMs)
  }

  /** Asking again changes nothing. @returns true for the first who asks */
  ask(settleMs: number): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    this.#asked.resolve(settleMs)
    return isFirst
  }
}

export interface SignalOptions {
  /** How long new connections are still taken after SIGTERM or SIGQUIT, milliseconds. */
  readonly settleMs: number
  readonly log: Logger
  /** What SIGHUP asks for. */
  onHangup(): void
  /** Ends the gateway like SIGINT does. */
  readonly signal?: AbortSignal
}

/**
 * SIGHUP reloads. SIGTERM and SIGQUIT drain; SIGINT too, without waiting for balancers to notice; a second one cuts. The others would
 * end the process or open its debugger, and do nothing instead.
 *
 * @returns stops watching
 */
export function watchSignals(
  shutdown: ShutdownRequest,
  { settleMs, log, onHangup, signal }: SignalOptions,
): () => void {
  const drain = () => shutdown.demand(settleMs)
  const interrupt = () => shutdown.demand(0)
  const ignore = (name: string) =>
    log.info({ signal: name }, 'this signal has no meaning here and is ignored')
  const hangUp = (name: string) => {
    log.info({ signal: name }, 'the configuration is read again')
    onHangup()
  }
  const handlers: readonly (readonly [NodeJS.Signals, (name: string) => void])[] = [
    ['SIGTERM', drain],
    ['SIGQUIT', drain],
    ['SIGINT', interrupt],
    ['SIGHUP', hangUp],
    ['SIGUSR1', ignore],
    ['SIGUSR2', ignore],
  ]
  for (const [name, handler] of handlers) process.on(name, handler)
  signal?.addEventListener('abort', interrupt)
  return () => {
    for (const [name, handler] of handlers) process.off(name, handler)
    signal?.removeEventListener('abort', interrupt)
  }
}
