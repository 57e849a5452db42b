/** Counters of the module in the gateway's metrics. */
import * as host from './extism'
import { toTextBlock } from './memory'

export namespace metric {
  /** Adds to a Prometheus series of the module. Few names only: none made of what a request holds. */
  export function increment(name: string, delta: i64 = 1): bool {
    const block = toTextBlock(name)
    const counted = host.metric_inc(block, delta)
    host.free(block)
    return counted == 1
  }
}

/** Milliseconds since 1970, now; `request.nowMs` is when the call began and costs nothing. */
export function nowMs(): i64 {
  return host.now_ms()
}
