/** Items of any answer of a model: numbered without gaps, each with one beginning and one end, and whole deltas. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationEvent } from '#kernel'
import { generations } from '../../../../../test/support/generation-arbitrary.ts'
import { checkResponseEvents, type WireEvent } from '../../../../../test/support/response-events.ts'
import { DONE, EventEncoder } from './event-encoder.ts'
import { ItemCollector } from './item-collector.ts'
import { toWireUsage } from './response-encoder.ts'

const options = {
  hasLogprobs: false,
  hasSummary: false,
  seal: null,
  hasSources: false,
  hasCodeOutputs: false,
  hasSearchResults: false,
  standIns: new Map(),
}

/** @returns the checked stream of the events, and their items */
function collect(all: readonly GenerationEvent[]) {
  const sent: WireEvent[] = []
  const events = new EventEncoder((frame) => {
    const [event, data] = frame.split('\n')
    sent.push({ event: event.slice('event: '.length), data: data.slice('data: '.length) })
  })
  const collector = new ItemCollector(events, options)
  const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [], usage: null }
  events.begin(JSON.stringify(response))
  for (const event of all) collector.add(event)
  const status = collector.end?.reason === 'length' ? 'incomplete' : 'completed'
  events.end(
    status,
    JSON.stringify({ ...response, status, output: collector.items(), usage: toWireUsage(null) }),
  )
  sent.push({ event: '', data: DONE.slice('data: '.length).trim() })
  return { ...checkResponseEvents(sent), items: collector.items() }
}

test('items are numbered without gaps, every item that begins ends, and deltas add up to the whole', () => {
  fc.assert(
    fc.property(generations(['f', 'g']), ({ events, names, reason }) => {
      const { items, text } = collect(events)
      const isIncomplete = items.some(({ status }) => status === 'incomplete')
      if (reason !== 'length') expect(isIncomplete).toBe(false)
      const calls = items.filter(({ type }) => type === 'function_call')
      expect(calls.map(({ name }) => name)).toEqual(names)
      const said = events.flatMap((event) => (event.type === 'text' ? [event.delta] : [])).join('')
      expect(text.replace(/\s/g, '')).toBe(said.replace(/\s/g, ''))
    }),
  )
})

test('text after a call is a new item, and so is reasoning after text; the last one is cut off', () => {
  const { items } = collect([
    { type: 'text', choice: 0, delta: 'a' },
    { type: 'reasoning', choice: 0, delta: 'b' },
    { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f' },
    { type: 'tool_call_done', choice: 0, index: 0 },
    { type: 'text', choice: 0, delta: 'd' },
    { type: 'choice_done', choice: 0, reason: 'length', matchedStop: null },
  ])
  expect(items.map(({ type, status }) => `${type} ${status}`)).toEqual([
    'message completed',
    'reasoning completed',
    'function_call completed',
    'message incomplete',
  ])
})

test('each signature ends its reasoning, and a new generation begins new items', () => {
  const end = { choice: 0, reason: 'stop', matchedStop: null } as const
  const { items } = collect([
    { type: 'reasoning', choice: 0, delta: 'a' },
    { type: 'reasoning_signature', choice: 0, signature: 's' },
    { type: 'reasoning', choice: 0, delta: 'b' },
    { type: 'text', choice: 0, delta: 'c' },
    { type: 'generation_done', ...end },
    { type: 'text', choice: 0, delta: 'd' },
    { type: 'generation_done', ...end },
    { type: 'choice_done', ...end },
  ])
  expect(items.map(({ type }) => type)).toEqual(['reasoning', 'reasoning', 'message', 'message'])
})
