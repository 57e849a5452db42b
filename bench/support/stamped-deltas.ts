/** Deltas that say which they are and when they were sent. */

/** Of each stream. */
export const DELTAS = 100

/** Between two deltas of a stream. */
export const PACE_MS = 100

/** Text of one delta. */
export function stamp(number: number, sentAtMicros: number): string {
  return `${number}:${sentAtMicros} `
}

/** In an event of either format: the number and the time of its delta. */
export const STAMP = /"(?:text|content)":"(\d+):(\d+) "/

/** Of the clock that is the same in all processes. @source Linux CLOCK_MONOTONIC, which `process.hrtime` reads */
export function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}
