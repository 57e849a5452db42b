/** Text that a module at OnText holds back, while some modules of its chain are not called. */
import type { StreamItemResult } from '../threads/guest-task.ts'
import { isWhole, type StreamWork } from './stream-work.ts'

/**
 * Text that a module holds back passes on to the next one if the module is not called, as it was suspended or lost. What no
 * called module gets is at the last place.
 */
export function releaseHeld(work: StreamWork, places: readonly number[]): void {
  const { states, waited } = work
  if (isWhole(work, places)) return
  let text = ''
  for (let place = 0; place < states.length; place++) {
    if (!places.includes(place)) {
      text = states[place] + text
      states[place] = ''
    } else if (text !== '') {
      const [next] = waited?.resume.pending ?? []
      // It comes behind the text that waits for this module.
      if (waited !== undefined && next?.place === place) {
        const event = { name: null, data: next.event.data + text }
        const resume = { ...waited.resume, pending: [{ ...next, event, isWritten: true }] }
        work.waited = { ...waited, resume }
      } else states[place] += text
      text = ''
    }
  }
  if (text !== '') states[states.length - 1] = text
}

/** The outgoing text behind what the last modules have held back, if they are not called. */
export function withHeld(
  work: StreamWork,
  places: readonly number[],
  out: StreamItemResult['out'],
): StreamItemResult['out'] {
  releaseHeld(work, places)
  const { states } = work
  const last = states.length - 1
  if (places.includes(last) || states[last] === '') return out
  const data = states[last] + (out.at(0)?.written ?? work.events.at(0) ?? { data: '' }).data
  states[last] = ''
  return [{ source: 0, written: { name: null, data } }]
}
