import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeFrame, PROTECTED_HEADERS, type StreamAction } from '../../../wasm-sdk/abi.ts'
import { applyEdits } from '../hooks/header-edits.ts'
import { BadOutput } from './guest-output.ts'
import { readPhaseOutput } from './phase-output.ts'
import { readStreamOutput } from './stream-output.ts'

const read = (head: unknown, body = '', isRequest = true) =>
  readPhaseOutput(encodeFrame(head, Buffer.from(body)), isRequest)

test('no output, an empty output and continue change nothing', () => {
  for (const output of [null, new Uint8Array(0), encodeFrame({ action: 'continue' }, Buffer.from('x'))])
    expect(readPhaseOutput(output, true)).toMatchObject({ action: 'continue', edits: [], body: null })
})

test('the body of modify is used only with replaces_body', () => {
  expect(read({ action: 'modify' }, 'x').body).toBeNull()
  expect(Buffer.from(read({ action: 'modify', replaces_body: true }, 'x').body ?? []).toString()).toBe('x')
  expect(read({ action: 'modify', replaces_body: true }).body).toHaveLength(0)
})

test('a status is accepted only for responses, from 200 to 599', () => {
  expect(read({ action: 'modify', status: 503 }).status).toBeNull()
  for (const status of [99, 199, 600, 1.5, '200', null])
    expect(read({ action: 'modify', status }, '', false).status).toBeNull()
  expect(read({ action: 'modify', status: 503 }, '', false).status).toBe(503)
})

describe('headers', () => {
  test('are applied in the order set, add, remove, in any order of the output', () => {
    const { edits } = read({
      action: 'modify',
      headers_remove: ['c'],
      headers_add: [['a', '2']],
      headers_set: [
        ['A', '1'],
        ['c', 'x'],
      ],
    })
    expect(applyEdits(['a', '0', 'b', '0', 'a', '00'], edits)).toEqual(['b', '0', 'a', '1', 'a', '2'])
  })

  test('that are protected or contain line breaks are dropped and counted', () => {
    const names = [...PROTECTED_HEADERS, 'Content-Length', 'a b', '', 'ü', 'a:b']
    const values = ['a\r\nb', 'a\nb', 'a\u0000b', '\u007f']
    const output = read({
      action: 'modify',
      headers_set: [...names.map((name) => [name, 'x']), ...values.map((value) => ['x-ok', value])],
    })
    expect([output.edits, output.droppedHeaders]).toEqual([[], names.length + values.length])
  })

  test('no header value can contain a line break', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const { edits } = read({ action: 'modify', headers_set: [['x-a', value]] })
        expect(edits.join('')).not.toMatch(/[\r\n\0]/)
      }),
    )
  })
})

test.each([
  ['no frame', Buffer.from('ab')],
  ['a head longer than the frame', Buffer.from([9, 0, 0, 0, 123])],
  ['a head that is not JSON', Buffer.from([1, 0, 0, 0, 120])],
  ['a head that is not an object', encodeFrame([1])],
  ['an unknown action', encodeFrame({ action: 'sing' })],
  ['headers that are no pairs', encodeFrame({ action: 'modify', headers_set: [['a']] })],
  ['names that are none', encodeFrame({ action: 'modify', headers_remove: [1] })],
])('%s is a failure of the guest', (_, output) => {
  expect(() => readPhaseOutput(output, true)).toThrow(BadOutput)
})

describe('output for a stream', () => {
  test('missing events keep the event, an empty list drops it', () => {
    expect(readStreamOutput(null)).toEqual({ events: null, state: null, fetch: null })
    expect(readStreamOutput(encodeFrame({ state: 's' }))).toEqual({ events: null, state: 's', fetch: null })
    expect(readStreamOutput(encodeFrame({ events: [] }))).toEqual({ events: [], state: null, fetch: null })
    expect(readStreamOutput(encodeFrame({ events: [{ data: 'x' }] })).events).toEqual([
      { name: null, data: 'x' },
    ])
  })

  test('event data in the body equal those in the head', () => {
    const entry = fc.record({
      name: fc.option(fc.stringMatching(/^[^\r\n]*$/)),
      data: fc.string({ unit: 'grapheme' }),
      isInBody: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(entry), fc.string(), (entries, behind) => {
        const events: StreamAction['events'] = entries.map(({ name, data, isInBody }) =>
          isInBody ? { name, data_bytes: Buffer.byteLength(data) } : { name, data },
        )
        const body = entries.map(({ data, isInBody }) => (isInBody ? data : '')).join('') + behind
        expect(readStreamOutput(encodeFrame({ events }, Buffer.from(body))).events).toEqual(
          entries.map(({ name, data }) => ({ name, data })),
        )
      }),
    )
  })

  test.each([
    { events: {} },
    { events: [{}] },
    { events: [null] },
    { events: [{ data: 'x', name: 'a\nb' }] },
    { events: [{ data_bytes: 1 }] },
    { events: [{ data_bytes: -1 }] },
    { events: [{ data_bytes: 0.5 }] },
    { events: [{ data_bytes: '0' }] },
    { events: [{ data_bytes: null }] },
    { events: [{ data_bytes: 0, name: 'a\nb' }] },
    { events: Array(1_025).fill({ data: '' }) },
    { state: 1 },
    { state: 'x'.repeat(65_537) },
  ])('%j is a failure of the guest', (head) => {
    expect(() => readStreamOutput(encodeFrame(head))).toThrow(BadOutput)
  })
})
