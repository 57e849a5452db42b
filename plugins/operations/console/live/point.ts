/** One message of the live stream, for the gateway and its pages. Imports nothing, because browsers have other types. */

/** Percentiles in milliseconds; null without an observation. */
export interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Figures since the point before; what the page's stream sends. */
export interface Point {
  /** Milliseconds since 1970. */
  readonly at_ms: number
  readonly requests_per_s: number
  /** By error code. */
  readonly errors_per_s: Readonly<Record<string, number>>
  readonly ttft_ms: Percentiles | null
  readonly itl_ms: Percentiles | null
  readonly duration_ms: Percentiles | null
  /** From the arrival of a request to its first attempt. */
  readonly added_ms: Percentiles | null
  readonly in_flight: number
  readonly queued: number
  readonly input_tokens_per_s: number
  readonly output_tokens_per_s: number
  readonly workers: { readonly ready: number; readonly total: number }
  readonly gateways: number
}
