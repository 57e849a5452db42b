/** What clients get of relayed streams of chat, whatever the worker sends and however its bytes are split. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { observe } from '../../../../test/support/observe.ts'
import { chatFormat } from './chat-format.ts'

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const piece = (content: string, reason: string | null = null) =>
  event({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
const DONE = 'data: [DONE]\n\n'

/** The client's bytes and the end of the stream. @param cuts positions between chunks */
function relay(stream: string, cuts: readonly number[]): { text: string; end: string } {
  const { text, end } = observe(chatFormat, stream, { cuts })
  return { text, end }
}

const words = fc.oneof(
  fc.string(),
  fc.constantFrom('abort', '"abort"', 'error', '{"error":1}', '\n\nevent: error\n'),
)
const cuts = fc.array(fc.nat(), { maxLength: 20 })

test('a stream without failures passes byte by byte, for any split', () => {
  const other = fc.constantFrom(
    ': comment\n\n',
    'event: ping\r\ndata: {}\r\n\r\n',
    event({ choices: [], usage: {} }),
  )
  const events = fc.array(
    fc.oneof(
      words.map((text) => piece(text)),
      other,
    ),
    { maxLength: 8 },
  )
  const last = fc.constantFrom(DONE, 'data: [DONE]', `${piece('', 'stop')}${DONE}`)
  fc.assert(
    fc.property(events, last, cuts, (list, end, at) => {
      const text = list.join('') + end
      expect(relay(text, at)).toEqual({ text, end: 'complete' })
    }),
  )
})

test('a complete answer without an end mark gets one, for any split', () => {
  const text = `${piece('abort')}${piece('', 'stop')}${event({ choices: [], usage: {} })}`
  fc.assert(
    fc.property(cuts, (at) => {
      expect(relay(text, at)).toEqual({ text: text + DONE, end: 'complete' })
    }),
  )
  const other = event({ object: 'other' })
  expect(relay(other, [])).toEqual({ text: other, end: 'complete' })
})

test('a failure becomes an error event of the API for any split, and nothing follows it', () => {
  const failure = fc.constantFrom(
    piece('x', 'abort'),
    piece('x', 'error'),
    event({ object: 'error', message: 'no', code: 400 }),
    event({ error: 'no' }),
    'event: error\ndata: no\n\n',
  )
  fc.assert(
    fc.property(fc.array(words, { maxLength: 4 }), failure, cuts, (list, failed, at) => {
      const before = list.map((word) => piece(word)).join('')
      const { text, end } = relay(before + failed + piece('more') + DONE, at)
      expect(end).toBe('error')
      expect(text.startsWith(before)).toBe(true)
      expect(text.slice(before.length)).toMatch(
        /^data: \{"error":\{"message":"[^"]+","type":"[^"]+","code":"[^"]+"\}\}\n\n$/,
      )
    }),
  )
})

test('an error that every client can read passes unchanged', () => {
  const text = piece('a') + event({ error: { message: 'no', type: 'server_error', code: null } })
  expect(relay(text, [])).toEqual({ text, end: 'error' })
})

test('behind an event that is too long the stream passes unread', () => {
  const text = `data: ${'x'.repeat(1_100_000)}\n\n${piece('a', 'abort')}${DONE}`
  expect(relay(text, [1_060_000, 1_090_000])).toEqual({ text, end: 'complete' })
})
