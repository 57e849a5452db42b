/** Keeps silent streams of this thread alive with `ping` events: one timer for all of them. */

export interface PingTarget {
  /** `performance.now()` of the last event, milliseconds. */
  lastEventMs: number
  ping(): void
}

/** The timer looks this often in a time of silence, so that a ping is late by a quarter at most. */
const LOOKS = 4
const MAX_LOOK_MS = 1_000

export class Pings {
  readonly #silenceMs: number
  readonly #targets = new Set<PingTarget>()
  #timer: NodeJS.Timeout | null = null

  /** @param silenceMs 0 for none */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  add(target: PingTarget): void {
    if (this.#silenceMs === 0) return
    this.#targets.add(target)
    if (this.#timer !== null) return
    const everyMs = Math.max(1, Math.min(MAX_LOOK_MS, Math.floor(this.#silenceMs / LOOKS)))
    this.#timer = setInterval(() => this.#look(), everyMs)
    this.#timer.unref()
  }

  remove(target: PingTarget): void {
    this.#targets.delete(target)
    if (this.#targets.size === 0) this.close()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #look(): void {
    const nowMs = performance.now()
    for (const target of this.#targets) {
      if (nowMs - target.lastEventMs < this.#silenceMs) continue
      target.lastEventMs = nowMs
      target.ping()
    }
  }
}
