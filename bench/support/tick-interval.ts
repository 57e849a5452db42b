/** Interval between the tokens of a simulated engine: that of a single stream, or of a batch on a fast machine. */

/** Milliseconds between the tokens of a stream. */
export const TICK_INTERVALS = [10, 2] as const

/** Starts with the first interval; each SIGUSR2 switches to the other. */
export function startTicks(tick: () => void): void {
  let index = 0
  let timer = setInterval(tick, TICK_INTERVALS[index])
  process.on('SIGUSR2', () => {
    clearInterval(timer)
    index = 1 - index
    timer = setInterval(tick, TICK_INTERVALS[index])
  })
}
