/** Long work on a thread that serves requests, done in turns with them. */
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Others on the thread wait no longer than this and one step. */
const TURN_MS = 5

/** @param steps work that yields now and then, when it can be left for a while */
export async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  let until = performance.now() + TURN_MS
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (performance.now() < until) continue
    await nextTurn()
    until = performance.now() + TURN_MS
  }
}
