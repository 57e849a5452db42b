import { expect, test } from 'vitest'
import { toClientHeaders } from './response-headers.ts'

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
