/** Grants of shared limits in one process; the same rules as the script of mesh-valkey. */
import type { Grant, GrantRequest } from '#kernel'

/** Above this number all buckets are forgotten. */
const MAX_BUCKETS = 10_000

interface Window {
  readonly number: number
  readonly used: number
}

export class GrantWindows {
  readonly #windows = new Map<string, Window>()

  /** @param nowMs wall clock */
  grant({ bucket, limit, windowMs, need, want, window }: GrantRequest, nowMs: number): Grant {
    const number = Math.floor(nowMs / windowMs)
    const known = this.#windows.get(bucket)
    const used = known?.number === number ? known.used : 0
    const left = Math.max(0, limit - used)
    let granted = 0
    if (want > 0) {
      // The fewer are left, the fewer for stocks: none is left over where no request comes.
      const spare = Math.floor(((want - need) * left) / limit)
      granted = Math.min(left, need + spare)
    } else if (window === number) {
      granted = 0 - Math.min(-want, used)
    }
    if (known === undefined && this.#windows.size >= MAX_BUCKETS) this.#windows.clear()
    this.#windows.set(bucket, { number, used: used + granted })
    return {
      granted,
      left: Math.max(0, limit - used - granted),
      window: number,
      endsInMs: Math.floor((number + 1) * windowMs - nowMs),
    }
  }
}
