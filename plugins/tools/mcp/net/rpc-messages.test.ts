/** Ids of outgoing messages, as written by the protocol library. */
import { expect, test } from 'vitest'
import { cancelledIdOf, readRpcEvent, requestIdOf } from './rpc-messages.ts'

test('the id of a request is found at its end, for any arguments', () => {
  const text = '"jsonrpc":"2.0","id":9}'
  const message = { method: 'tools/call', params: { name: 'a', arguments: { text } }, jsonrpc: '2.0', id: 17 }
  expect(requestIdOf(JSON.stringify(message))).toBe(17)
  expect(requestIdOf('{"method":"notifications/initialized","jsonrpc":"2.0"}')).toBeNull()
  expect(requestIdOf('{"result":{},"jsonrpc":"2.0","id":"x"}')).toBeNull()
})

test('a cancellation has the id of the request', () => {
  const message = {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 17, reason: 'x' },
  }
  expect(cancelledIdOf(JSON.stringify(message))).toBe(17)
  expect(cancelledIdOf('{"method":"tools/call","params":{"requestId":17}}')).toBeNull()
})

test.each([
  ['data: {"a":1}\n\n', { id: null, retryMs: null, data: '{"a":1}' }],
  ['event: message\r\ndata:x\r\n\r\n', { id: null, retryMs: null, data: 'x' }],
  ['event: ping\ndata: x\n\n', { id: null, retryMs: null, data: null }],
  ['data: a\ndata: b\n\n', { id: null, retryMs: null, data: 'a\nb' }],
  ['id: 7\nretry: 500\n\n', { id: '7', retryMs: 500, data: null }],
  ['id: 7\nretry: soon\ndata:\n\n', { id: '7', retryMs: null, data: '' }],
  ['retry: 999999999\n\n', { id: null, retryMs: 600_000, data: null }],
  [`id: ${'x'.repeat(5_000)}\n\n`, { id: null, retryMs: null, data: null }],
  [': a comment\n\n', { id: null, retryMs: null, data: null }],
  ['data\n\n', { id: null, retryMs: null, data: null }],
])('%j', (text, event) => {
  expect(readRpcEvent(text)).toEqual(event)
})
