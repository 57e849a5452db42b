import { expect, test } from 'vitest'
import { isPlainEventStream, toClientHeaders } from './response-headers.ts'

test('what the worker names in Connection is about its connection, and stays here', () => {
  const headers = [
    'x-a',
    '1',
    'connection',
    'close, X-Hop',
    'x-hop',
    '2',
    'connection',
    'x-b',
    'x-b',
    '3',
    'keep-alive',
    't',
  ]
  expect(toClientHeaders(headers)).toEqual(['x-a', '1'])
  expect(toClientHeaders(['connection', 'keep-alive', 'x-a', '1'])).toEqual(['x-a', '1'])
})

test.each<[string, string | null, boolean]>([
  ['text/event-stream', null, true],
  ['text/event-stream; charset=utf-8', null, true],
  ['text/event-stream ;charset=utf-8', null, true],
  ['Text/Event-Stream', 'Identity', true],
  ['TEXT/EVENT-STREAM;charset=utf-8', 'identity', true],
  ['text/event-streams', null, false],
  ['text/event', null, false],
  ['text/event-stream', 'gzip', false],
  ['text/plain', null, false],
  ['', null, false],
])('%j with the coding %j is an event stream whose events can be seen: %s', (type, coding, isPlain) => {
  const headers = ['content-type', type, ...(coding === null ? [] : ['content-encoding', coding])]
  expect(isPlainEventStream(headers)).toBe(isPlain)
})
