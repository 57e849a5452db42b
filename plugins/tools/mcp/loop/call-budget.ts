/** How many calls of the gateway's tools a turn may still make. */

export class CallBudget {
  readonly #most: number
  used = 0

  /** @param wanted of the request; null: only the operator's limit holds */
  constructor(wanted: number | null, most: number) {
    this.#most = Math.min(wanted ?? most, most)
  }

  /** False when none is left. */
  take(): boolean {
    if (this.used >= this.#most) return false
    this.used++
    return true
  }
}
