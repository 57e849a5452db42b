/** Formats sizes and times. */

export function showBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  const kib = bytes / 1024
  return kib < 1024 ? `${round(kib)} KiB` : `${round(kib / 1024)} MiB`
}

export function showMs(ms: number): string {
  return ms < 10 ? ms.toFixed(3) : ms.toFixed(1)
}

export function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

export interface Spread {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Percentiles by nearest rank. */
export function spreadOf(timesMs: readonly number[]): Spread {
  const sorted = Float64Array.from(timesMs).sort()
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0
  return { count: sorted.length, p50Ms: rank(0.5), p99Ms: rank(0.99), maxMs: rank(1) }
}

function round(value: number): string {
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}
