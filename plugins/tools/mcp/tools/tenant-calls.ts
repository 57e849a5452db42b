/** How many calls of each tenant run at the moment on this thread. */

export class TenantCalls {
  readonly #most: number
  readonly #running = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** False when the tenant has as many as it may; otherwise `leave` has to follow. */
  enter(tenant: string): boolean {
    const count = this.#running.get(tenant) ?? 0
    if (count >= this.#most) return false
    this.#running.set(tenant, count + 1)
    return true
  }

  leave(tenant: string): void {
    const count = this.#running.get(tenant) ?? 0
    if (count <= 1) this.#running.delete(tenant)
    else this.#running.set(tenant, count - 1)
  }
}
