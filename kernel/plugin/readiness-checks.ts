/** Readiness of one thread: permanent checks, and checks of the startup, which count for a limited time only. */
import { defineReplica } from '../contracts/token.ts'

/** Whether the wait for configured workers and their tokenizers is over; published by control. */
export const StartupWaitReplica = defineReplica<{ readonly isOver: boolean }>('kernel.startup-wait', {
  isOver: false,
})

/** Returns why the gateway is not ready, or null. */
export type ReadinessCheck = () => string | null

export class ReadinessChecks {
  readonly #permanent: ReadinessCheck[] = []
  readonly #startup: ReadinessCheck[] = []
  readonly #warnings: ReadinessCheck[] = []
  readonly #isWaitOver: () => boolean
  #hasStarted = false

  /** @param isWaitOver whether the time of the startup checks is over; control decides for all threads */
  constructor(isWaitOver: () => boolean) {
    this.#isWaitOver = isWaitOver
  }

  add(check: ReadinessCheck, isStartup: boolean): void {
    if (isStartup) this.#startup.push(check)
    else this.#permanent.push(check)
  }

  /** Adds a check that is shown and does not count. */
  addWarning(check: ReadinessCheck): void {
    this.#warnings.push(check)
  }

  /** The first reason; null if ready. Startup checks no longer count once all have passed or their time is over. */
  reason(): string | null {
    return firstOf(this.#permanent) ?? this.#startupReason()
  }

  /** What the startup checks still miss, also after their time is over. */
  missing(): readonly string[] {
    return reasonsOf(this.#startup)
  }

  warnings(): readonly string[] {
    return reasonsOf(this.#warnings)
  }

  /** Whether a startup check has not passed and its time is not over. */
  isStarting(): boolean {
    return this.#startupReason() !== null
  }

  #startupReason(): string | null {
    if (this.#hasStarted) return null
    const reason = this.#isWaitOver() ? null : firstOf(this.#startup)
    this.#hasStarted = reason === null
    return reason
  }
}

function reasonsOf(checks: readonly ReadinessCheck[]): readonly string[] {
  return checks.map((check) => check()).filter((reason) => reason !== null)
}

function firstOf(checks: readonly ReadinessCheck[]): string | null {
  for (const check of checks) {
    const reason = check()
    if (reason !== null) return reason
  }
  return null
}
