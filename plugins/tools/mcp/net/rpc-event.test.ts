/** Events of tool servers, field by field. */
import { expect, test } from 'vitest'
import { readRpcEvent } from './rpc-event.ts'

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
