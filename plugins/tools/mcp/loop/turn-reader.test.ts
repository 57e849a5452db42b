/** The reader of one generation: for any worker output, calls are numbered without gaps, and what clients see is passed on. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationEvent } from '#kernel'
import { generations } from '../../../../test/support/generation-arbitrary.ts'
import type { CallRoute } from './turn-messages.ts'
import { toAssistantMessage } from './turn-messages.ts'
import { TurnOutput } from './turn-output.ts'
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
  const emitted: GenerationEvent[] = []
  const output = new TurnOutput({ onEvent: (event) => void emitted.push(event) })
  const reader = new TurnReader(output, (name) => ROUTES[name], true)
  for (const event of events) reader.read(event)
  return { emitted, turn: reader.turn, count: output.nextCall() }
}

const generation = generations(Object.keys(ROUTES))

test('the calls that clients see are numbered without gaps, and all text is passed on', () => {
  fc.assert(
    fc.property(generation, ({ events, names, reason }) => {
      const { emitted, turn, count } = read(events)
      const shown = names.filter((name) => name === 'own' || name === 'ours')
      const begun = emitted.flatMap((event) => (event.type === 'tool_call' ? [event] : []))
      expect(begun.map(({ index }) => index)).toEqual(shown.map((_, index) => index))
      expect(begun.map(({ tool }) => tool !== undefined)).toEqual(shown.map((name) => name === 'ours'))
      expect(count).toBe(shown.length)
      const asked = emitted.filter(({ type }) => type === 'approval_requested')
      if (reason !== 'length') expect(asked).toHaveLength(names.filter((name) => name === 'asks').length)
      for (const { index, argumentText } of turn.calls) {
        const own = emitted.filter((event) => 'index' in event && event.index === index && index !== null)
        const pieces = own.flatMap((event) => (event.type === 'tool_arguments' ? [event.delta] : []))
        if (index !== null) expect(pieces.join('') || '{}').toBe(argumentText || '{}')
      }
      const texts = (all: readonly GenerationEvent[]) =>
        all.filter(({ type }) => type === 'text' || type === 'reasoning' || type === 'refusal')
      expect(texts(emitted)).toEqual(texts(events))
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

test('the approval of a call is requested in its place, unless the answer is cut off behind it', () => {
  const call = { choice: 0, index: 0 }
  const of = (reason: 'stop' | 'length') => [
    { ...call, type: 'tool_call' as const, id: 'c', name: 'asks' },
    { ...call, type: 'tool_call_done' as const },
    { type: 'choice_done' as const, choice: 0, reason, matchedStop: null },
  ]
  const text = { type: 'text', choice: 0, delta: 'd' } as const
  const typesOf = (events: GenerationEvent[]) => read(events).emitted.map(({ type }) => type)
  const [begin, done, end] = of('length')
  expect(typesOf([begin, done, text, end])).toEqual(['approval_requested', 'text', 'generation_done'])
  expect(typesOf(of('length'))).toEqual(['generation_done'])
  expect(typesOf(of('stop'))).toEqual(['approval_requested', 'generation_done'])
})

test('data of the vendor stays with its call: in the items, and in the message of the next request', () => {
  const extraContent = { google: { thought_signature: 's' } }
  const call = { choice: 0, index: 0 }
  const { emitted, turn } = read([
    { ...call, type: 'tool_call', id: 'c', name: 'own', extraContent },
    { ...call, type: 'tool_call_done' },
    { type: 'choice_done', choice: 0, reason: 'tool_calls', matchedStop: null },
  ])
  expect(emitted[0]).toMatchObject({ extraContent })
  expect(toAssistantMessage(turn).tool_calls).toMatchObject([{ extra_content: extraContent }])
})
