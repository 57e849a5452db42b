/** Checks that generation events follow the grammar of the contract. */
import type { GenerationEvent } from '#kernel'

interface ChoiceState {
  isDone: boolean
  /** Tool calls by index. */
  readonly calls: Map<number, 'open' | 'done'>
}

/** @returns the violations; empty if there are none */
export function breachesOf(events: readonly GenerationEvent[]): string[] {
  const breaches: string[] = []
  const choices = new Map<number, ChoiceState>()
  events.forEach((event, at) => {
    const report = (text: string) => breaches.push(`event ${at} (${event.type}): ${text}`)
    if ((event.type === 'started') !== (at === 0)) report('started comes first, once')
    if (event.type === 'started') return
    if (event.type === 'finished' || event.type === 'failed') {
      if (at !== events.length - 1) report('nothing follows the end')
      for (const [index, { isDone }] of choices)
        if (event.type === 'finished' && !isDone) report(`choice ${index} has not ended`)
      return
    }
    const choice = choices.get(event.choice) ?? { isDone: false, calls: new Map() }
    choices.set(event.choice, choice)
    if (choice.isDone) report(`choice ${event.choice} has ended`)
    if ('delta' in event && event.delta === '') report('deltas are never empty')
    if (event.type === 'choice_done') {
      choice.isDone = true
      for (const [index, state] of choice.calls) if (state === 'open') report(`call ${index} is not whole`)
    }
    if (event.type === 'tool_call') {
      if (event.index !== choice.calls.size) report('calls are numbered from 0')
      if (event.id === '' || event.name === '') report('a call has an id and a name')
      choice.calls.set(event.index, 'open')
    }
    if (event.type === 'tool_arguments' || event.type === 'tool_call_done') {
      if (choice.calls.get(event.index) !== 'open') report(`call ${event.index} is not open`)
      if (event.type === 'tool_call_done') choice.calls.set(event.index, 'done')
    }
  })
  const last = events.at(-1)?.type
  if (last !== 'finished' && last !== 'failed') breaches.push(`the last event is ${last}`)
  return breaches
}
