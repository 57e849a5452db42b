import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DeltaForm } from './worker-delta.ts'

const TYPE = 'response.output_text.delta'
const first = {
  type: TYPE,
  sequence_number: 4,
  item_id: 'msg_up',
  output_index: 0,
  content_index: 0,
  delta: 'He',
  logprobs: [],
  obfuscation: 'aB3',
}
const GATEWAY = { item_id: 'msg_own', output_index: 2, content_index: 1 }

const formOf = (event: object, text = JSON.stringify(event)) =>
  DeltaForm.of(event as Readonly<Record<string, unknown>>, text)

/** The frame that clients get; null if the event is not of the form. */
function rewritten(form: DeltaForm | null, text: string, number: number): string | null {
  const delta = form?.read(text) ?? null
  const frame = form?.frame(GATEWAY) ?? null
  return delta === null || frame === null ? null : delta.write(frame, number)
}

const ORDERS = {
  'as OpenAI sends it': Object.keys(first),
  'sorted, as vLLM sends it': Object.keys(first).sort(),
  reversed: Object.keys(first).reverse(),
}

test.each(Object.entries(ORDERS))('%s, a delta keeps all but number, id and places', (_, names) => {
  const ordered = (event: Record<string, unknown>) =>
    Object.fromEntries(names.map((name) => [name, event[name]]))
  const form = formOf(ordered(first))
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), fc.nat(), fc.nat(), (delta, theirs, ours) => {
      const event = ordered({ ...first, sequence_number: theirs, delta, obfuscation: '' })
      const text = JSON.stringify(event)
      expect(form?.read(text)?.delta).toBe(delta)
      const expected = JSON.stringify({ ...event, sequence_number: ours, ...GATEWAY })
      expect(rewritten(form, text, ours)).toBe(`event: ${TYPE}\ndata: ${expected}\n\n`)
    }),
  )
})

test('spaces between members are kept', () => {
  const spaced = JSON.stringify(first, null, 1).replaceAll('\n', ' ')
  expect(rewritten(formOf(first, spaced), spaced.replace('"He"', '"llo"'), 9)).toBe(
    `event: ${TYPE}\ndata: ${JSON.stringify({ ...first, ...GATEWAY, sequence_number: 9, delta: 'llo' }, null, 1).replaceAll('\n', ' ')}\n\n`,
  )
})

test('members that a vendor adds are kept, and an event where they differ is read anew', () => {
  const form = formOf({ ...first, tier: 'x', count: 1 })
  const next = { ...first, tier: 'x', count: 1, delta: 'llo' }
  expect(rewritten(form, JSON.stringify(next), 4)).toContain('"tier":"x","count":1')
  for (const other of [{ count: 2 }, { tier: 'y' }, { more: 1 }, { item_id: 'msg_2' }, { logprobs: [{}] }])
    expect(form?.read(JSON.stringify({ ...next, ...other }))).toBeNull()
})

test.each([
  ['a control character in the text', '"He"', '"H\u0001"'],
  ['an escape in the padding, which would pass unread', '"aB3"', '"\\q"'],
  ['text behind the event', '"aB3"}', '"aB3"} '],
  ['a text without an end', '"aB3"}', '"aB3'],
  ['no text', '"He"', '""'],
  ['a number that JSON does not have', ':4,', ':04,'],
  ['a negative number', ':4,', ':-4,'],
  ['no number', ':4,', ':null,'],
  ['a member twice', '"delta":"He"', '"delta":"He","delta":"x"'],
])('an event with %s is not of the form', (_, from, to) => {
  const text = JSON.stringify(first)
  expect(formOf(first)?.read(text.replace(from, to))).toBeNull()
})

test('an escape that JSON does not have is an error, as for events that are read', () => {
  expect(() => formOf(first)?.read(JSON.stringify(first).replace('"He"', '"\\q"'))).toThrow(SyntaxError)
})

test.each([
  ['nested values', { logprobs: [{ token: 'He' }] }],
  ['an object', { more: {} }],
  ['no number', { sequence_number: undefined }],
  ['no index', { output_index: undefined }],
  ['no log probabilities, which clients of text expect', { logprobs: undefined }],
  ['a delta that is no text', { delta: 1 }],
])('an event with %s has no form', (_, other) => {
  expect(formOf({ ...first, ...other })).toBeNull()
})

test('an event with a name twice has no form, and one without a place has no frame', () => {
  expect(formOf(first, JSON.stringify(first).replace('{', '{"delta":"x",'))).toBeNull()
  expect(formOf({ ...first, item_id: undefined })?.frame(GATEWAY)).toBeNull()
})

test('an id with names of other members in it is not mistaken for them', () => {
  const id = '","delta":"x","sequence_number":7,"'
  const form = formOf({ ...first, item_id: id })
  expect(rewritten(form, JSON.stringify({ ...first, item_id: id, delta: 'llo' }), 1)).toBe(
    `event: ${TYPE}\ndata: ${JSON.stringify({ ...first, ...GATEWAY, sequence_number: 1, delta: 'llo' })}\n\n`,
  )
})
