/** Counters of the module in the gateway's metrics. */
import * as host from './extism'
import { toTextBlock } from './memory'

export namespace metric {
  /** Adds to a Prometheus series of the module. The number of names is limited: do not derive them from requests. */
  export function increment(name: string, delta: i64 = 1): bool {
    const block = toTextBlock(name)
    const counted = host.metric_inc(block, delta)
    host.free(block)
    return counted == 1
  }
}

/** Current time, milliseconds since 1970. `request.nowMs` is the start of the call and needs no host call. */
export function nowMs(): i64 {
  return host.now_ms()
}
