/** Readiness of one thread: permanent checks, and checks of the startup, which count for a limited time only. */

/** Returns why the gateway is not ready, or null. */
export type ReadinessCheck = () => string | null

export class ReadinessChecks {
  readonly #permanent: ReadinessCheck[] = []
  readonly #startup: ReadinessCheck[] = []
  #isStarting = true
  #endsAtMs = Number.POSITIVE_INFINITY

  add(check: ReadinessCheck, isStartup: boolean): void {
    if (isStartup) this.#startup.push(check)
    else this.#permanent.push(check)
  }

  /** @param waitMs time from now on for which startup checks count, milliseconds */
  begin(waitMs: number): void {
    this.#endsAtMs = performance.now() + waitMs
  }

  /** The first reason; null if ready. Startup checks no longer count once all have passed or their time is over. */
  reason(): string | null {
    return firstOf(this.#permanent) ?? this.#startupReason()
  }

  /** What the startup checks still miss, also after their time is over. */
  missing(): readonly string[] {
    return this.#startup.map((check) => check()).filter((reason) => reason !== null)
  }

  #startupReason(): string | null {
    if (!this.#isStarting) return null
    const reason = performance.now() < this.#endsAtMs ? firstOf(this.#startup) : null
    this.#isStarting = reason !== null
    return reason
  }
}

function firstOf(checks: readonly ReadinessCheck[]): string | null {
  for (const check of checks) {
    const reason = check()
    if (reason !== null) return reason
  }
  return null
}
