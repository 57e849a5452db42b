import { expect, test } from 'vitest'
import { endOfStream } from './native-relay.ts'

const STOP = '\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
const START = 'event: message_start\ndata: {"type":"message_start"}\n\n'

test.each([
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n', 'complete'],
  ['event:message_stop\r\ndata:{"type":"message_stop"}\r\n\r\n', 'complete'],
  ['data: {"type": "message_stop", "metrics": {"latency": 1}}\n\n', 'complete'],
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n: bye\n\ndata: [DONE]\n\n', 'complete'],
  ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n', 'error'],
  ['', 'cut'],
  ['event: ping\ndata: {"type":"ping"}\n\n', 'cut'],
  ['event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n', 'cut'],
  // Event text inside the model's text does not count.
  [`data: {"delta":{"text":${JSON.stringify(STOP)}}}\n\n`, 'cut'],
  ['event: message_st', 'cut'],
])('end of a stream that ends with %j: %s', (end, expected) => {
  expect(endOfStream(Buffer.from(end === '' ? '' : START + end))).toBe(expected)
})
