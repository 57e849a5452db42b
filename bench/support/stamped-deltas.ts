/** Deltas that contain their number and send time. */

/** Deltas per stream. */
export const DELTAS = 100

/** Time between two deltas of a stream. */
export const PACE_MS = 100

export function stamp(number: number, sentAtMicros: number): string {
  return `${number}:${sentAtMicros} `
}

/** Matches number and time of a delta in an event of either format. */
export const STAMP = /"(?:text|content)":"(\d+):(\d+) "/

/** Microseconds of CLOCK_MONOTONIC, which all processes share. */
export function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}
