/**
 * Layout of a breaker's cell: 2 bits state, 16 bits run, 14 bits epoch, which change together by compare-and-swap.
 * @hot
 */
export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

/** Largest run that is counted. */
export const MAX_RUN = 0xffff

const STATE_MASK = 0b11
const RUN_SHIFT = 2
const EPOCH_SHIFT = 18
const EPOCH_MASK = 0x3fff

/** @param epoch wraps around */
export function toCell(state: number, run: number, epoch: number): number {
  return ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | (run << RUN_SHIFT) | state
}

export function withRun(cell: number, run: number): number {
  return (cell & ~(MAX_RUN << RUN_SHIFT)) | (run << RUN_SHIFT)
}

export function stateOf(cell: number): number {
  return cell & STATE_MASK
}

/** Consecutive failures of a closed breaker, failures that opened an open one, or consecutive successes of a half-open one. */
export function runOf(cell: number): number {
  return (cell >>> RUN_SHIFT) & MAX_RUN
}

/** Incremented by each change of state. */
export function epochOf(cell: number): number {
  return cell >>> EPOCH_SHIFT
}
