/** Sequences of events that the generation contract allows: calls numbered from 0, with interleaved deltas. */
import fc from 'fast-check'
import type { GenerationEvent } from '#kernel'

const pieces = (names: readonly string[]) =>
  fc.oneof(
    fc.record({ kind: fc.constant('text' as const), delta: fc.string({ minLength: 1 }) }),
    fc.record({ kind: fc.constant('reasoning' as const), delta: fc.string({ minLength: 1 }) }),
    fc.record({ kind: fc.constant('refusal' as const), delta: fc.string({ minLength: 1 }) }),
    fc.record({ kind: fc.constant('call' as const), name: fc.constantFrom(...names) }),
    fc.record({ kind: fc.constant('arguments' as const), of: fc.nat(), delta: fc.string({ minLength: 1 }) }),
    fc.record({ kind: fc.constant('done' as const), of: fc.nat() }),
  )

/** @param names of the functions that the model may call */
export function generations(named: readonly string[]) {
  return fc
    .tuple(
      fc.array(pieces(named)),
      fc.constantFrom('stop' as const, 'tool_calls' as const, 'length' as const),
    )
    .map(([pieces, reason]) => {
      const events: GenerationEvent[] = []
      const names: string[] = []
      const whole = new Set<number>()
      for (const each of pieces) {
        const index = 'of' in each && names.length > 0 ? each.of % names.length : -1
        if (each.kind === 'call') {
          events.push({
            type: 'tool_call',
            choice: 0,
            index: names.length,
            id: `c${names.length}`,
            name: each.name,
          })
          names.push(each.name)
        } else if (each.kind === 'arguments') {
          if (index >= 0 && !whole.has(index))
            events.push({ type: 'tool_arguments', choice: 0, index, delta: each.delta })
        } else if (each.kind === 'done') {
          if (index >= 0 && !whole.has(index)) events.push({ type: 'tool_call_done', choice: 0, index })
          whole.add(index)
        } else events.push({ type: each.kind, choice: 0, delta: each.delta })
      }
      events.push({ type: 'choice_done', choice: 0, reason, matchedStop: null })
      return { events, names, reason }
    })
}
