import { expect, test } from 'vitest'
import { isCompleteStream } from './native-relay.ts'

const STOP = '\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
const START = 'event: message_start\ndata: {"type":"message_start"}\n\n'

test.each([
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n', true],
  ['event:message_stop\r\ndata:{"type":"message_stop"}\r\n\r\n', true],
  ['data: {"type": "message_stop", "metrics": {"latency": 1}}\n\n', true],
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n: bye\n\ndata: [DONE]\n\n', true],
  ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n', true],
  ['', false],
  ['event: ping\ndata: {"type":"ping"}\n\n', false],
  ['event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n', false],
  // Event text inside the model's text does not count.
  [`data: {"delta":{"text":${JSON.stringify(STOP)}}}\n\n`, false],
  ['event: message_st', false],
])('completeness of a stream that ends with %j: %s', (end, isWhole) => {
  expect(isCompleteStream(Buffer.from(end === '' ? '' : START + end))).toBe(isWhole)
})
