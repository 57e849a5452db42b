/** How often the engine that is played tells one more token: as a single stream does, or as a batch on a fast machine. */

/** Milliseconds between the tokens of a stream. */
export const PACES = [10, 2] as const

/** Calls at the first pace; each SIGUSR2 goes on to the other. */
export function switchPace(tick: () => void): void {
  let place = 0
  let timer = setInterval(tick, PACES[place])
  process.on('SIGUSR2', () => {
    clearInterval(timer)
    place = 1 - place
    timer = setInterval(tick, PACES[place])
  })
}
