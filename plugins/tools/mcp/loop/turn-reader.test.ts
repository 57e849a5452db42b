/** The reader of one generation: for any worker output, items are numbered without gaps, and each ends once. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationEvent, ToolLoopEvent } from '#kernel'
import { TurnOutput } from '#shared'
import type { CallRoute } from './turn-messages.ts'
import { toAssistantMessage } from './turn-messages.ts'
import { TurnReader } from './turn-reader.ts'

const tool = (isHidden: boolean) =>
  ({ isHidden, called: { kind: 'mcp', label: 'l', name: 'n' }, server: { plan: { label: 'l' } } }) as never

const ROUTES: Record<string, CallRoute> = {
  own: { kind: 'function' },
  ours: { kind: 'gateway', tool: tool(false) },
  hidden: { kind: 'gateway', tool: tool(true) },
  asks: { kind: 'approval', tool: tool(false) },
  none: { kind: 'refused', reason: 'unknown' },
}

function read(events: readonly GenerationEvent[]) {
  const emitted: ToolLoopEvent[] = []
  const output = new TurnOutput({ onEvent: (event) => void emitted.push(event) })
  const reader = new TurnReader(output, (name) => ROUTES[name], true)
  for (const event of events) reader.read(event)
  return { emitted, turn: reader.turn, count: output.nextIndex() }
}

const piece = fc.oneof(
  fc.record({ kind: fc.constant('text' as const), delta: fc.string({ minLength: 1 }) }),
  fc.record({ kind: fc.constant('reasoning' as const), delta: fc.string({ minLength: 1 }) }),
  fc.record({ kind: fc.constant('refusal' as const), delta: fc.string({ minLength: 1 }) }),
  fc.record({ kind: fc.constant('call' as const), name: fc.constantFrom(...Object.keys(ROUTES)) }),
  fc.record({ kind: fc.constant('arguments' as const), of: fc.nat(), delta: fc.string({ minLength: 1 }) }),
  fc.record({ kind: fc.constant('done' as const), of: fc.nat() }),
)

/** A sequence that the generation contract allows: calls numbered from 0, with interleaved deltas. */
const generation = fc
  .tuple(fc.array(piece), fc.constantFrom('stop' as const, 'tool_calls' as const, 'length' as const))
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

test('indexes increase without gaps, every started item ends, and deltas add up to the whole', () => {
  fc.assert(
    fc.property(generation, ({ events, names, reason }) => {
      const { emitted, turn, count } = read(events)
      const begins = new Set(['item_started', 'function_started', 'call_started', 'approval_requested'])
      const begun = emitted.flatMap((event) =>
        begins.has(event.type) && 'index' in event ? [event.index] : [],
      )
      expect(begun).toEqual(Array.from({ length: count }, (_, i) => i))
      const isCut = reason === 'length'
      for (const index of begun) {
        const own = emitted.filter((event) => 'index' in event && event.index === index)
        const ends = own.filter(({ type }) =>
          /^(item_done|function_done|call_arguments_done|approval_requested)$/.test(type),
        )
        // The loop ends a truncated gateway call.
        expect(ends.length).toBe(own[0].type === 'call_started' && isCut ? ends.length : 1)
        const pieces = own.flatMap((event) =>
          /_arguments$/.test(event.type) && 'delta' in event ? [event.delta] : [],
        )
        const last = own.at(-1)
        if (last && 'arguments' in last && last.type !== 'approval_requested')
          expect(pieces.join('')).toBe(last.arguments)
      }
      expect(turn.calls.map(({ name }) => name)).toEqual(names)
      const said = (type: string) =>
        events.flatMap((event) => (event.type === type && 'delta' in event ? [event.delta] : [])).join('')
      expect([turn.text, turn.reasoning, turn.refusal]).toEqual([
        said('text'),
        said('reasoning'),
        said('refusal'),
      ])
    }),
  )
})

test('text after a call is a new item, and so is reasoning after text', () => {
  const { emitted } = read([
    { type: 'text', choice: 0, delta: 'a' },
    { type: 'reasoning', choice: 0, delta: 'b' },
    { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'own' },
    { type: 'tool_call_done', choice: 0, index: 0 },
    { type: 'text', choice: 0, delta: 'd' },
    { type: 'choice_done', choice: 0, reason: 'length', matchedStop: null },
  ])
  expect(emitted.map((event) => ('index' in event ? `${event.index} ${event.type}` : ''))).toEqual([
    '0 item_started',
    '0 text',
    '0 item_done',
    '1 item_started',
    '1 reasoning',
    '1 item_done',
    '2 function_started',
    '2 function_arguments',
    '2 function_done',
    '3 item_started',
    '3 text',
    '3 item_done',
  ])
  expect(emitted.at(-1)).toMatchObject({ isCut: true })
})

test('data of the vendor stays with its call: in the items, and in the message of the next request', () => {
  const extraContent = { google: { thought_signature: 's' } }
  const call = { choice: 0, index: 0 }
  const { emitted, turn } = read([
    { ...call, type: 'tool_call', id: 'c', name: 'own', extraContent },
    { ...call, type: 'tool_call_done' },
    { type: 'choice_done', choice: 0, reason: 'tool_calls', matchedStop: null },
  ])
  for (const type of ['function_started', 'function_done'])
    expect(emitted.find((event) => event.type === type)).toMatchObject({
      members: { extra_content: extraContent },
    })
  expect(toAssistantMessage(turn).tool_calls).toMatchObject([{ extra_content: extraContent }])
})
