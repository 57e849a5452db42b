/** Closes the sockets of one route that have had nothing to do for too long. */

const MAX_CHECK_MS = 5_000
/** @source RFC 6455 §7.4.1 */
const NORMAL = 1000

export interface IdleSocket {
  /** Null while it works; `performance.now()` of the last time it did otherwise. */
  readonly idleSinceMs: number | null
  close(code: number, reason: string): void
}

export class IdleWatch {
  readonly #idleMs: number
  readonly #sockets = new Set<IdleSocket>()
  #timer: NodeJS.Timeout | null = null

  /** @param idleMs 0 never closes any */
  constructor(idleMs: number) {
    this.#idleMs = idleMs
  }

  add(socket: IdleSocket): void {
    if (this.#idleMs === 0) return
    this.#sockets.add(socket)
    this.#timer ??= setInterval(() => this.#closeIdle(), Math.min(MAX_CHECK_MS, this.#idleMs / 4)).unref()
  }

  remove(socket: IdleSocket): void {
    this.#sockets.delete(socket)
    if (this.#sockets.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  #closeIdle(): void {
    const nowMs = performance.now()
    for (const socket of [...this.#sockets]) {
      const { idleSinceMs } = socket
      if (idleSinceMs !== null && nowMs - idleSinceMs > this.#idleMs) socket.close(NORMAL, 'idle')
    }
  }
}
