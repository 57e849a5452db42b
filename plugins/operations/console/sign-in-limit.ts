/** Bounds the failed sign-ins of an address. Kept on control, so that the limit is that of the gateway. */
import { retryAfter } from '#kernel'
import { consoleErrors } from './errors.ts'

const MAX_FAILURES = 10
const WINDOW_MS = 60_000
/** Oldest windows are dropped beyond this number of addresses. */
const MAX_ADDRESSES = 10_000

export class SignInLimit {
  readonly #windows = new Map<string, { readonly endsAtMs: number; count: number }>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Counts an attempt before its check, so that attempts at the same time do not pass together. @throws too_many_sign_ins */
  begin(address: string): void {
    const nowMs = this.#nowMs()
    let window = this.#windows.get(address)
    if (window === undefined || window.endsAtMs <= nowMs) {
      // Deleted first, so that the order of the map is that of the ends.
      this.#windows.delete(address)
      window = { endsAtMs: nowMs + WINDOW_MS, count: 0 }
      this.#windows.set(address, window)
    }
    if (window.count >= MAX_FAILURES)
      throw consoleErrors.too_many_sign_ins.with(
        retryAfter(Math.ceil((window.endsAtMs - nowMs) / 1_000)),
        MAX_FAILURES,
      )
    window.count++
    if (this.#windows.size > MAX_ADDRESSES) this.#windows.delete(this.#windows.keys().next().value as string)
  }

  /** Takes back an attempt that was no failure. */
  succeeded(address: string): void {
    const window = this.#windows.get(address)
    if (window !== undefined) window.count--
  }
}
