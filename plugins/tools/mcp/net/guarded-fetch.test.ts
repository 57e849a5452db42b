/** Ids of outgoing messages, as written by the protocol library. */
import { expect, test } from 'vitest'
import { cancelledIdOf, requestIdOf } from './guarded-fetch.ts'

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
