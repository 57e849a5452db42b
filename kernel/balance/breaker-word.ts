/**
 * The cell of one breaker: 2 bits state, 16 bits run, 14 bits epoch, so that all three change at once.
 * @hot
 */
export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

/** Longest run that is counted. */
export const MAX_RUN = 0xffff

const STATE_MASK = 0b11
const RUN_SHIFT = 2
const EPOCH_SHIFT = 18
const EPOCH_MASK = 0x3fff

/** @param epoch wraps */
export function toWord(state: number, run: number, epoch: number): number {
  return ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | (run << RUN_SHIFT) | state
}

export function withRun(word: number, run: number): number {
  return (word & ~(MAX_RUN << RUN_SHIFT)) | (run << RUN_SHIFT)
}

export function stateOf(word: number): number {
  return word & STATE_MASK
}

/** Failures in a row of a closed breaker, or that opened an open one; successes in a row of a half-open one. */
export function runOf(word: number): number {
  return (word >>> RUN_SHIFT) & MAX_RUN
}

/** Grows with each change of state. */
export function epochOf(word: number): number {
  return word >>> EPOCH_SHIFT
}
